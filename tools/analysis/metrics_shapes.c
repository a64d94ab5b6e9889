/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The shapes that operators receive, and when they are new. */
#include <xxhash.h>

#include "tools/analysis/metrics.h"

/* distinct shapes per operator; later ones never count as new */
#define SHAPES_MAX 65536u

/* Hashes the sizes of all tensors, chained by the seed; 0: there are none. */
static uint64_t hash_shapes(const struct inputs *inputs)
{
	uint64_t hash = 0;

	for (uint32_t i = 0; i < inputs->n_items; i++) {
		const struct input *input = &inputs->items[i];

		if (input->kind == INPUT_TENSOR)
			hash = XXH64(input->dims, input->n_dims * sizeof(*input->dims), hash);
	}
	return hash;
}

void torsh_metrics_shapes(struct metrics_process *of, struct metrics_operator *op,
			  const struct inputs *inputs, const struct span *span, size_t interval)
{
	uint64_t hash = inputs->is_whole ? hash_shapes(inputs) : 0;
	struct key_slot *slot = hash ? torsh_key_index_find(&op->shapes, hash) : NULL;

	if (!slot || slot->key || op->shapes.n_keys == SHAPES_MAX)
		return;
	torsh_key_index_fill(&op->shapes, slot, hash, 1);
	if (interval < of->scope.first_steady || interval >= of->scope.n_whole)
		return;
	op->new_shapes_ns += span->end_ns - span->start_ns;
	op->n_shapes_steps += op->last_shapes_step != interval + 1;
	op->last_shapes_step = interval + 1;
}
