/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which shapes operators meet, and when they are new. See tools/analysis/metrics.h. */
#include <xxhash.h>

#include "tools/analysis/metrics.h"

/* of an operator that are reported apart: none that comes after them is new */
#define SHAPES_MAX 65536u

/* Of the sizes of all tensors, each with the ones before it as its seed; 0: there are none. */
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
