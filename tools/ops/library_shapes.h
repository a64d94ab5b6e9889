/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The sizes of a product that stand for a call which came with a shape: of a convolution those of
 * the product of its weights with the pieces of what it reads (im2col), with a batch for its
 * groups.
 */
#ifndef TORSH_OPS_LIBRARY_SHAPES_H
#define TORSH_OPS_LIBRARY_SHAPES_H

#include "tools/recording/recording.h"

/*
 * Set m, n, k and batch of a product, an inner product or a (transposed) convolution that has a
 * shape, as events have it, and no sizes. Other calls, and shapes that can't be read, stay.
 */
void torsh_library_set_sizes(struct recorded_library_call *call);

#endif
