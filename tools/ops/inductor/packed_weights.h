/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Weights that oneDNN packed for a model that Inductor froze: they have no sizes that could be read
 * where they are used, but the operators that packed them had the weights as they were. Which one
 * is which is known by the sizes and numbers that both have, as long as all that fit are of one
 * size.
 */
#ifndef TORSH_OPS_INDUCTOR_PACKED_WEIGHTS_H
#define TORSH_OPS_INDUCTOR_PACKED_WEIGHTS_H

#include <stdbool.h>

#include "tools/recording/recording.h"

struct packed_weights;

struct packed_weights *torsh_packed_weights_create(void);
void torsh_packed_weights_destroy(struct packed_weights *weights);

/* Returns whether an operator of that name packs weights. */
bool torsh_packs_weights(const char *name);

/* Take over such an operator's inputs, whose text is copied. */
void torsh_packed_weights_add(struct packed_weights *weights,
			      const struct recorded_process *process, const char *name,
			      const char *inputs);

/*
 * Returns the text of inputs of an operator that uses packed weights with these as they were, which
 * the caller frees. NULL: none fit, or of several sizes.
 */
char *torsh_packed_weights_fill(const struct packed_weights *weights,
				const struct recorded_process *process, const char *name,
				const char *inputs);

#endif
