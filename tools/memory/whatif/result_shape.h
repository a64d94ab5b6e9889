/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The shape of an operator's result, for operators where the inputs give it. */
#ifndef TORSH_MEMORY_WHATIF_RESULT_SHAPE_H
#define TORSH_MEMORY_WHATIF_RESULT_SHAPE_H

#include "tools/memory/shapes/batch.h"

struct result_shape {
	struct shape shape;
	uint64_t item_bytes; /* of an element; 0: unknown */
	bool has_batch;
	bool is_product; /* of matrices */
};

/* Find the shape. Returns false for other operators. */
bool torsh_result_shape(struct result_shape *result, const struct batch *batch,
			const char *operator_name, const struct inputs *inputs);

/* Returns the size of a tensor's element; 0: unknown. */
uint64_t torsh_input_item_bytes(const struct input *tensor);

#endif
