/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/whatif/result_shape.h"

#include <string.h>

uint64_t torsh_input_item_bytes(const struct input *tensor)
{
	static const struct {
		const char *type;
		uint64_t bytes;
	} types[] = {
		{"float32", 4}, {"float16", 2}, {"bfloat16", 2},  {"float64", 8},
		{"int64", 8},	{"int32", 4},	{"int16", 2},	  {"int8", 1},
		{"uint8", 1},	{"bool", 1},	{"complex64", 8},
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		if (strlen(types[i].type) == tensor->n_type &&
		    strncmp(types[i].type, tensor->text, tensor->n_type) == 0)
			return types[i].bytes;
	}
	return 0;
}

/* Returns input i if it is a tensor, or NULL. */
static const struct input *tensor_at(const struct inputs *inputs, uint32_t i)
{
	const struct input *input = torsh_inputs_get(inputs, i);

	return input && input->kind == INPUT_TENSOR ? input : NULL;
}

static bool is_weight(const struct batch *batch, const struct input *tensor)
{
	struct shape memory = torsh_shape_of_memory(tensor);

	return torsh_batch_is_parameter(batch, &memory);
}

static bool is_multiple(const struct batch *batch, int64_t dim)
{
	return dim > 0 && (uint64_t)dim % batch->size == 0;
}

/* Whether a dimension of the tensor is the one with the batch. */
static bool has_batch_at(const struct batch *batch, const struct input *tensor, uint32_t dim)
{
	struct shape shape = torsh_shape_of(tensor);

	return !is_weight(batch, tensor) && torsh_batch_dimension(batch, &shape) == (int)dim;
}

/*
 * Whether the product of a and b has the batch. A transposed matrix on the left: the gradient of a
 * weight, a sum over the batch. Else the rows of activations stay, of several matrices also their
 * number.
 */
static bool product_has_batch(const struct batch *batch, const struct input *a,
			      const struct input *b)
{
	uint32_t last = a->n_dims - 1;

	if (a->n_dims > 2)
		return is_multiple(batch, a->dims[0]);
	if (a->has_strides && a->strides[0] < a->strides[last])
		return !is_multiple(batch, a->dims[last]) &&
		       (has_batch_at(batch, a, 0) || has_batch_at(batch, b, last));
	return is_multiple(batch, a->dims[0]) && (is_weight(batch, b) || !is_weight(batch, a));
}

/* The product of inputs first and first + 1: all but the last of one, the last of the other. */
static bool multiply(struct result_shape *result, const struct batch *batch,
		     const struct inputs *inputs, uint32_t first)
{
	const struct input *a = tensor_at(inputs, first), *b = tensor_at(inputs, first + 1);

	if (!a || !b || a->n_dims < 2 || b->n_dims != a->n_dims)
		return false;
	result->shape = torsh_shape_of(a);
	result->shape.dims[a->n_dims - 1] = b->dims[b->n_dims - 1];
	result->item_bytes = torsh_input_item_bytes(a);
	result->is_product = true;
	result->has_batch = batch->size && product_has_batch(batch, a, b);
	return true;
}

/* A new tensor, whose size is a list. */
static bool create(struct result_shape *result, const struct batch *batch,
		   const struct inputs *inputs, uint32_t at)
{
	const struct input *list = torsh_inputs_get(inputs, at);

	if (!list || list->kind != INPUT_LIST || list->n_items > INPUT_DIMS_MAX)
		return false;
	result->shape.n = list->n_items;
	for (uint32_t i = 0; i < list->n_items; i++) {
		if (list[i + 1].kind != INPUT_INTEGER)
			return false;
		result->shape.dims[i] = list[i + 1].integer;
	}
	result->has_batch = torsh_batch_dimension(batch, &result->shape) != BATCH_NONE;
	/* One dimension of bytes or of parts in one piece has nothing about what is inside. */
	return result->shape.n != 1 || result->has_batch;
}

/* A sum over some dimensions, which stay as 1. */
static bool reduce(struct result_shape *result, const struct batch *batch,
		   const struct inputs *inputs, uint32_t at)
{
	const struct input *tensor = tensor_at(inputs, at),
			   *dims = torsh_inputs_get(inputs, at + 1);
	int with_batch;

	if (!tensor || !dims || dims->kind != INPUT_LIST || !dims->n_items)
		return false;
	result->shape = torsh_shape_of(tensor);
	result->item_bytes = torsh_input_item_bytes(tensor);
	with_batch = torsh_batch_dimension(batch, &result->shape);
	for (uint32_t i = 1; i <= dims->n_items; i++) {
		int64_t dim = dims[i].integer + (dims[i].integer < 0 ? result->shape.n : 0);

		if (dims[i].kind != INPUT_INTEGER || dim < 0 || dim >= result->shape.n)
			return false;
		result->shape.dims[dim] = 1;
		with_batch = with_batch == (int)dim ? BATCH_NONE : with_batch;
	}
	result->has_batch = with_batch != BATCH_NONE;
	return true;
}

/* Rows of a matrix, one for each index. */
static bool look_up(struct result_shape *result, const struct batch *batch,
		    const struct input *rows, const struct input *indices)
{
	if (!rows || !indices || rows->n_dims != 2 || indices->n_dims >= INPUT_DIMS_MAX)
		return false;
	result->shape = torsh_shape_of(indices);
	result->has_batch = torsh_batch_dimension(batch, &result->shape) != BATCH_NONE;
	result->shape.dims[result->shape.n++] = rows->dims[1];
	result->item_bytes = torsh_input_item_bytes(rows);
	return true;
}

static bool embed(struct result_shape *result, const struct batch *batch,
		  const struct inputs *inputs, uint32_t at)
{
	return look_up(result, batch, tensor_at(inputs, at), tensor_at(inputs, at + 1));
}

static bool select_rows(struct result_shape *result, const struct batch *batch,
			const struct inputs *inputs, uint32_t at)
{
	const struct input *dim = torsh_inputs_get(inputs, at + 1);

	return dim && dim->kind == INPUT_INTEGER && dim->integer == 0 &&
	       look_up(result, batch, tensor_at(inputs, at), tensor_at(inputs, at + 2));
}

/* Tensors of a list, along a dimension. */
static bool concatenate(struct result_shape *result, const struct batch *batch,
			const struct inputs *inputs, uint32_t at)
{
	const struct input *list = torsh_inputs_get(inputs, at),
			   *dim = torsh_inputs_get(inputs, at + 1);
	int64_t along, sum = 0;

	if (!list || list->kind != INPUT_LIST || !list->n_items || !dim ||
	    dim->kind != INPUT_INTEGER || list[1].kind != INPUT_TENSOR)
		return false;
	result->shape = torsh_shape_of(&list[1]);
	along = dim->integer + (dim->integer < 0 ? result->shape.n : 0);
	for (uint32_t i = 1; i <= list->n_items; i++) {
		if (list[i].kind != INPUT_TENSOR || along < 0 || along >= list[i].n_dims)
			return false;
		sum += list[i].dims[along];
	}
	result->has_batch = torsh_batch_dimension(batch, &result->shape) != BATCH_NONE;
	result->shape.dims[along] = sum;
	result->item_bytes = torsh_input_item_bytes(&list[1]);
	return true;
}

bool torsh_result_shape(struct result_shape *result, const struct batch *batch,
			const char *operator_name, const struct inputs *inputs)
{
	/* at: of the inputs, the first that counts */
	static const struct {
		const char *operator_name;
		bool (*find)(struct result_shape *result, const struct batch *batch,
			     const struct inputs *inputs, uint32_t at);
		uint32_t at;
	} rules[] = {
		{"aten::mm", multiply, 0},
		{"aten::bmm", multiply, 0},
		{"aten::addmm", multiply, 1},
		{"aten::baddbmm", multiply, 1},
		{"aten::_addmm_activation", multiply, 1},
		{"aten::empty", create, 0},
		{"aten::empty_strided", create, 0},
		{"aten::zeros", create, 0},
		{"aten::ones", create, 0},
		{"aten::full", create, 0},
		{"aten::randn", create, 0},
		{"aten::new_empty", create, 1},
		{"aten::new_zeros", create, 1},
		{"aten::sum", reduce, 0},
		{"aten::mean", reduce, 0},
		{"aten::embedding", embed, 0},
		{"aten::index_select", select_rows, 0},
		{"aten::cat", concatenate, 0},
	};

	*result = (struct result_shape){0};
	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		if (strcmp(rules[i].operator_name, operator_name) == 0)
			return rules[i].find(result, batch, inputs, rules[i].at);
	}
	return false;
}
