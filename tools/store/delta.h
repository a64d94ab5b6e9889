/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Columns of a chunk that are stored as differences, because the numbers themselves hardly
 * compress: stacks' parents, and numbers and times that are nearly in order. In memory a chunk has
 * the plain columns only.
 */
#ifndef TORSH_STORE_DELTA_H
#define TORSH_STORE_DELTA_H

#include "recording.pb-c.h"

/* Turn the plain columns into differences, in the same memory. */
void torsh_delta_encode(Torsh__Chunk *chunk);

/*
 * Turn differences back into plain columns. Invalid differences become invalid numbers, which
 * readers of the columns check.
 */
void torsh_delta_decode(Torsh__Chunk *chunk);

#endif
