/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ops/flops.h"

#include <string.h>

/*
 * A formula sets the number for the inputs of a call. Returns false if the inputs don't have the
 * expected form.
 */
typedef bool flops_formula(const struct inputs *inputs, uint64_t factor, struct flops *flops);

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/*
 * Returns the tensor that is input i, if it has at least n_dims sizes and none is negative; else
 * NULL.
 */
static const struct input *tensor_at(const struct inputs *inputs, uint32_t i, uint32_t n_dims)
{
	const struct input *input = torsh_inputs_get(inputs, i);

	if (!input || input->kind != INPUT_TENSOR || input->n_dims < n_dims)
		return NULL;
	for (uint32_t k = 0; k < input->n_dims; k++) {
		if (input->dims[k] < 0)
			return NULL;
	}
	return input;
}

static uint64_t dim(const struct input *tensor, uint32_t i)
{
	return (uint64_t)tensor->dims[i];
}

/* Returns the product of the sizes from i on. */
static uint64_t product_from(const struct input *tensor, uint32_t i)
{
	uint64_t product = 1;

	for (; i < tensor->n_dims; i++)
		product = times(product, dim(tensor, i));
	return product;
}

static bool count(struct flops *flops, uint64_t n)
{
	flops->all = n;
	flops->counter = n;
	return true;
}

/* (... x M x K) times (... x K x N): as many products as the first operand has matrices. */
static bool multiply(const struct inputs *inputs, uint32_t first, uint64_t factor,
		     struct flops *flops)
{
	const struct input *a = tensor_at(inputs, first, 2), *b = tensor_at(inputs, first + 1, 2);

	if (!a || !b || dim(a, a->n_dims - 1) != dim(b, b->n_dims - 2))
		return false;
	return count(flops,
		     times(times(2 * factor, torsh_input_elements(a)), dim(b, b->n_dims - 1)));
}

static bool formula_mm_0(const struct inputs *inputs, uint64_t factor, struct flops *flops)
{
	return multiply(inputs, 0, factor, flops);
}

static bool formula_mm_1(const struct inputs *inputs, uint64_t factor, struct flops *flops)
{
	return multiply(inputs, 1, factor, flops);
}

/* Weights are out x in. */
static bool formula_linear(const struct inputs *inputs, uint64_t factor, struct flops *flops)
{
	const struct input *x = tensor_at(inputs, 0, 1), *weight = tensor_at(inputs, 1, 1);

	if (!x || !weight || dim(weight, weight->n_dims - 1) != dim(x, x->n_dims - 1))
		return false;
	return count(flops, times(times(2 * factor, torsh_input_elements(x)),
				  weight->n_dims > 1 ? dim(weight, 0) : 1));
}

/* mkl::_mkl_linear: the packed weights have no sizes to read; the weights as they were follow. */
static bool formula_mkl_linear(const struct inputs *inputs, uint64_t factor, struct flops *flops)
{
	const struct input *x = tensor_at(inputs, 0, 1), *weight = tensor_at(inputs, 2, 2);

	if (!x || !weight || dim(weight, 1) != dim(x, x->n_dims - 1))
		return false;
	return count(flops, times(times(2 * factor, torsh_input_elements(x)), dim(weight, 0)));
}

/*
 * x, what is added if there are 5 inputs, weights, bias. Weights that oneDNN packed have no sizes
 * to read: the bias, if there is one, has the results'.
 */
static bool formula_packed_linear(const struct inputs *inputs, uint64_t factor, struct flops *flops)
{
	uint32_t i = inputs->n == 5 ? 2 : 1;
	const struct input *x = tensor_at(inputs, 0, 1), *weight = tensor_at(inputs, i, 2);
	const struct input *bias = tensor_at(inputs, i + 1, 1);

	if (x && weight)
		return dim(weight, 1) == dim(x, x->n_dims - 1) &&
		       count(flops,
			     times(times(2 * factor, torsh_input_elements(x)), dim(weight, 0)));
	return x && bias && bias->n_dims == 1 &&
	       count(flops, times(times(2 * factor, torsh_input_elements(x)), dim(bias, 0)));
}

static bool formula_mv_0(const struct inputs *inputs, uint64_t factor, struct flops *flops)
{
	const struct input *matrix = tensor_at(inputs, 0, 2);

	return matrix && count(flops, times(2 * factor, torsh_input_elements(matrix)));
}

static bool formula_mv_1(const struct inputs *inputs, uint64_t factor, struct flops *flops)
{
	const struct input *matrix = tensor_at(inputs, 1, 2);

	return matrix && count(flops, times(2 * factor, torsh_input_elements(matrix)));
}

/* factor per element of the first tensor. */
static bool formula_first(const struct inputs *inputs, uint64_t factor, struct flops *flops)
{
	const struct input *x = tensor_at(inputs, 0, 0);

	return x && count(flops, times(factor, torsh_input_elements(x)));
}

/* factor per element of each tensor in the list that is the first input. */
static bool formula_list(const struct inputs *inputs, uint64_t factor, struct flops *flops)
{
	const struct input *list = torsh_inputs_get(inputs, 0);
	uint64_t n = 0;

	if (!list || list->kind != INPUT_LIST)
		return false;
	for (uint32_t i = 1; i <= list->n_items; i++)
		n = plus(n, torsh_input_elements(&list[i]));
	return count(flops, times(factor, n));
}

/*
 * Broadcasting aligns sizes at the last one; each size of the result is the largest of the
 * inputs'.
 */
static bool formula_broadcast(const struct inputs *inputs, uint64_t factor, struct flops *flops)
{
	uint64_t sizes[INPUT_DIMS_MAX], n = 1;
	bool has_tensor = false;

	for (size_t i = 0; i < INPUT_DIMS_MAX; i++)
		sizes[i] = 1;
	for (uint32_t i = 0; i < inputs->n; i++) {
		const struct input *x = tensor_at(inputs, i, 0);

		has_tensor = has_tensor || x;
		for (uint32_t k = 0; x && k < x->n_dims; k++) {
			uint64_t *size = &sizes[x->n_dims - 1 - k];

			*size = *size == 1 || !dim(x, k) ? dim(x, k) : *size;
		}
	}
	for (size_t i = 0; i < INPUT_DIMS_MAX; i++)
		n = times(n, sizes[i]);
	return has_tensor && count(flops, times(factor, n));
}

/* Get number i of the list, or its only one. Returns false if there is none. */
static bool number_at(const struct input *list, uint32_t i, int64_t *number)
{
	if (!list || list->kind != INPUT_LIST || !list->n_items)
		return false;
	list += 1 + (i < list->n_items ? i : list->n_items - 1);
	*number = list->integer;
	return list->kind == INPUT_INTEGER || list->kind == INPUT_BOOL;
}

/* The windows of a convolution or of pooling. */
struct windows {
	const struct input *stride, *padding, *dilation; /* lists; dilation NULL: all 1 */
};

/*
 * Multiply the number of results along each of x's sizes from 2 on, for windows of the given
 * sizes. Returns false if these can't be.
 */
static bool count_windows(const struct input *x, const struct windows *windows,
			  const int64_t *sizes, uint64_t *n)
{
	*n = 1;
	for (uint32_t i = 2; i < x->n_dims; i++) {
		int64_t stride, padding, dilation = 1, room, window;

		if (!number_at(windows->stride, i - 2, &stride) ||
		    !number_at(windows->padding, i - 2, &padding) ||
		    (windows->dilation && !number_at(windows->dilation, i - 2, &dilation)) ||
		    stride <= 0)
			return false;
		if (__builtin_mul_overflow(dilation, sizes[i - 2] - 1, &window) ||
		    __builtin_mul_overflow(padding, 2, &room) ||
		    __builtin_add_overflow(room, x->dims[i], &room) ||
		    __builtin_sub_overflow(room, window, &room))
			return false;
		if (room <= 0)
			return false;
		*n = times(*n, (uint64_t)((room - 1) / stride + 1));
	}
	return true;
}

/* Each result takes window x channels products; for a transposed convolution each input does. */
static bool convolve(const struct input *x, const struct input *weight,
		     const struct windows *windows, bool is_transposed, struct flops *flops)
{
	uint64_t n_places;

	if (!x || !weight || x->n_dims != weight->n_dims)
		return false;
	if (is_transposed)
		n_places = product_from(x, 2);
	else if (!count_windows(x, windows, weight->dims + 2, &n_places))
		return false;
	return count(flops,
		     times(times(times(2, dim(x, 0)), n_places), torsh_input_elements(weight)));
}

/* input, weight, bias, stride, padding, dilation, transposed, output_padding, groups */
static bool formula_convolution(const struct inputs *inputs, uint64_t factor, struct flops *flops)
{
	const struct input *transposed = torsh_inputs_get(inputs, 6);
	const struct windows windows = {
		.stride = torsh_inputs_get(inputs, 3),
		.padding = torsh_inputs_get(inputs, 4),
		.dilation = torsh_inputs_get(inputs, 5),
	};

	(void)factor;
	if (!transposed || transposed->kind != INPUT_BOOL)
		return false;
	return convolve(tensor_at(inputs, 0, 3), tensor_at(inputs, 1, 3), &windows,
			transposed->integer, flops);
}

/* input, weight, ..., padding, stride, dilation from input `first` on */
static bool formula_library_convolution(const struct inputs *inputs, uint64_t first,
					struct flops *flops)
{
	const struct windows windows = {
		.padding = torsh_inputs_get(inputs, (uint32_t)first),
		.stride = torsh_inputs_get(inputs, (uint32_t)first + 1),
		.dilation = torsh_inputs_get(inputs, (uint32_t)first + 2),
	};

	return convolve(tensor_at(inputs, 0, 3), tensor_at(inputs, 1, 3), &windows, false, flops);
}

/*
 * x, weight, bias, then padding, strides and dilation; another tensor may be before or after x.
 * Returns the index of the padding, or 0.
 */
static uint32_t find_padding(const struct inputs *inputs)
{
	uint32_t i = 3;
	const struct input *input = torsh_inputs_get(inputs, i);

	if (input && input->kind != INPUT_LIST)
		input = torsh_inputs_get(inputs, ++i);
	return input && input->kind == INPUT_LIST ? i : 0;
}

static bool formula_pointwise_convolution(const struct inputs *inputs, uint64_t x,
					  struct flops *flops)
{
	uint32_t padding = find_padding(inputs);
	const struct windows windows = {
		.padding = torsh_inputs_get(inputs, padding),
		.stride = torsh_inputs_get(inputs, padding + 1),
		.dilation = torsh_inputs_get(inputs, padding + 2),
	};

	return padding && convolve(tensor_at(inputs, (uint32_t)x, 3),
				   tensor_at(inputs, padding - 2, 3), &windows, false, flops);
}

static bool formula_pointwise_transposed(const struct inputs *inputs, uint64_t x,
					 struct flops *flops)
{
	uint32_t padding = find_padding(inputs);

	return padding && convolve(tensor_at(inputs, (uint32_t)x, 3),
				   tensor_at(inputs, padding - 2, 3), NULL, true, flops);
}

/* input, weight, kernel size, bias, stride, padding */
static bool formula_slow_convolution(const struct inputs *inputs, uint64_t factor,
				     struct flops *flops)
{
	const struct windows windows = {
		.stride = torsh_inputs_get(inputs, 4),
		.padding = torsh_inputs_get(inputs, 5),
	};

	(void)factor;
	return convolve(tensor_at(inputs, 0, 3), tensor_at(inputs, 1, 3), &windows, false, flops);
}

/*
 * grad_output, input, weight, bias sizes, stride, padding, dilation, transposed, output_padding,
 * groups, output_mask. Each gradient costs as much as the convolution. FlopCounterMode counts the
 * weight's as if there were one group.
 */
static bool formula_convolution_backward(const struct inputs *inputs, uint64_t factor,
					 struct flops *flops)
{
	const struct input *grad = tensor_at(inputs, 0, 3), *x = tensor_at(inputs, 1, 3),
			   *weight = tensor_at(inputs, 2, 3);
	const struct input *transposed = torsh_inputs_get(inputs, 7),
			   *groups = torsh_inputs_get(inputs, 9);
	const struct input *mask = torsh_inputs_get(inputs, 10), *places;
	int64_t with_input, with_weight;
	uint64_t n;

	(void)factor;
	if (!grad || !x || !weight || grad->n_dims != weight->n_dims ||
	    x->n_dims != weight->n_dims || !transposed || transposed->kind != INPUT_BOOL ||
	    !groups || groups->kind != INPUT_INTEGER || groups->integer <= 0 ||
	    !number_at(mask, 0, &with_input) || !number_at(mask, 1, &with_weight))
		return false;
	places = transposed->integer ? x : grad;
	n = times(times(2, dim(x, 0)), product_from(places, 2));
	count(flops, with_input ? times(n, torsh_input_elements(weight)) : 0);
	if (with_weight) {
		uint64_t of_weight =
			times(times(times(n, product_from(weight, 2)), dim(x, 1)), dim(grad, 1));

		flops->counter = plus(flops->counter, of_weight);
		flops->all = plus(flops->all, of_weight / (uint64_t)groups->integer);
	}
	return true;
}

/* Computes batch x heads x length of the query x length of the keys x `inner`. */
static bool attend(const struct input *query, const struct input *key, const struct input *value,
		   uint64_t n_query, uint64_t n_value, struct flops *flops)
{
	uint64_t n;

	if (!query || !key || !value || dim(query, 3) != dim(key, 3) ||
	    dim(key, 2) != dim(value, 2))
		return false;
	n = times(times(times(times(2, dim(query, 0)), dim(query, 1)), dim(query, 2)), dim(key, 2));
	return count(flops,
		     times(n, plus(times(n_query, dim(query, 3)), times(n_value, dim(value, 3)))));
}

/* query x key, and the scores x value. A causal mask is ignored. */
static bool formula_attention(const struct inputs *inputs, uint64_t factor, struct flops *flops)
{
	return attend(tensor_at(inputs, 0, 4), tensor_at(inputs, 1, 4), tensor_at(inputs, 2, 4),
		      factor, factor, flops);
}

/*
 * grad_output, query, key, value: the scores again, then two products for each of the two matrix
 * products.
 */
static bool formula_attention_backward(const struct inputs *inputs, uint64_t factor,
				       struct flops *flops)
{
	return attend(tensor_at(inputs, 1, 4), tensor_at(inputs, 2, 4), tensor_at(inputs, 3, 4),
		      3 * factor, 2 * factor, flops);
}

/* input (length x batch x size), weights of the input, weights of the hidden state */
static bool formula_rnn_layer(const struct inputs *inputs, uint64_t factor, struct flops *flops)
{
	const struct input *x = tensor_at(inputs, 0, 3), *weight = tensor_at(inputs, 1, 2),
			   *hidden = tensor_at(inputs, 2, 2);

	if (!x || !weight || !hidden)
		return false;
	return count(flops,
		     times(times(2 * factor, times(dim(x, 0), dim(x, 1))),
			   plus(torsh_input_elements(weight), torsh_input_elements(hidden))));
}

/* input (length x batch x size), list of the weights and biases of all layers */
static bool formula_rnn_weights(const struct inputs *inputs, uint64_t factor, struct flops *flops)
{
	const struct input *x = tensor_at(inputs, 0, 3), *list = torsh_inputs_get(inputs, 1);
	uint64_t n = 0;

	if (!x || !list || list->kind != INPUT_LIST)
		return false;
	for (uint32_t i = 1; i <= list->n_items; i++)
		n = plus(n, list[i].n_dims > 1 ? torsh_input_elements(&list[i]) : 0);
	return count(flops, times(times(2 * factor, times(dim(x, 0), dim(x, 1))), n));
}

/* input (batch x channels x ...), window sizes, stride (empty: the window sizes), padding */
static bool formula_pool(const struct inputs *inputs, uint64_t factor, struct flops *flops)
{
	const struct input *x = tensor_at(inputs, 0, 3), *size = torsh_inputs_get(inputs, 1);
	struct windows windows = {.stride = torsh_inputs_get(inputs, 2),
				  .padding = torsh_inputs_get(inputs, 3)};
	int64_t sizes[INPUT_DIMS_MAX] = {0};
	uint64_t n = 1;

	if (!x)
		return false;
	if (!windows.stride || !windows.stride->n_items)
		windows.stride = size;
	for (uint32_t i = 2; i < x->n_dims; i++) {
		if (!number_at(size, i - 2, &sizes[i - 2]) || sizes[i - 2] <= 0)
			return false;
		factor = times(factor, (uint64_t)sizes[i - 2]);
	}
	if (!count_windows(x, &windows, sizes, &n))
		return false;
	return count(flops, times(times(factor, n), times(dim(x, 0), dim(x, 1))));
}

struct row {
	const char *name;
	flops_formula *formula; /* NULL: the operator computes nothing */
	enum flops_place place;
	uint64_t factor;
	bool is_in_counter;
};

static const struct row rows[] = {
#define FORMULA(name, place, formula, factor, is_in_counter) \
	{#name, formula_##formula, FLOPS_##place, factor, is_in_counter},
#define NONE(name) {#name, NULL, FLOPS_HERE, 0, false},
#include "tools/ops/flops.def"
#undef FORMULA
#undef NONE
};

static const struct row *find_row(const char *name, size_t n)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (strncmp(rows[i].name, name, n) == 0 && !rows[i].name[n])
			return &rows[i];
	}
	return NULL;
}

/* Looks up the name as it is, then without "_foreach_", and both without a trailing underscore. */
static const struct row *find_operator(const char *name, bool *is_list)
{
	static const char list[] = "_foreach_";
	size_t n = strlen(name);
	const struct row *row = find_row(name, n);

	*is_list = false;
	if (!row && n > 1 && name[n - 1] == '_')
		row = find_row(name, --n);
	if (row || strncmp(name, list, sizeof(list) - 1) != 0)
		return row;
	*is_list = true;
	name += sizeof(list) - 1;
	n -= sizeof(list) - 1;
	row = find_row(name, n);
	/* Only elementwise operators have _foreach_ variants. */
	return row && (!row->formula || row->formula == formula_broadcast ||
		       row->formula == formula_first)
		       ? row
		       : NULL;
}

/* Returns whether the name is the row's with an underscore behind it. */
static bool is_in_place(const char *name, const struct row *row)
{
	size_t n = strlen(name), n_row = strlen(row->name);

	return name[n - 1] == '_' && row->name[n_row - 1] != '_';
}

/* Returns whether the operator works on something other than numbers in tensors. */
static bool is_of_no_numbers(const char *name)
{
	static const char *const spaces[] = {"c10d::",
					     "profiler::",
					     "torch::autograd::",
					     "autograd::",
					     "prim::",
					     "torch::jit::",
					     "inductor::_reinterpret_tensor",
					     "PythonDispatchMode",
					     "TorchDynamo ",
					     "Torch-Compiled "};

	for (size_t i = 0; i < sizeof(spaces) / sizeof(*spaces); i++) {
		if (strncmp(name, spaces[i], strlen(spaces[i])) == 0)
			return true;
	}
	return false;
}

/* Inputs without data: torch.compile traces them, or the program only wants their sizes. */
static bool has_no_data(const struct inputs *inputs)
{
	for (uint32_t i = 0; i < inputs->n_items; i++) {
		if (inputs->items[i].kind == INPUT_TENSOR && inputs->items[i].is_meta)
			return true;
	}
	return false;
}

static bool is_elsewhere(const struct inputs *inputs)
{
	for (uint32_t i = 0; i < inputs->n_items; i++) {
		if (inputs->items[i].kind == INPUT_TENSOR && inputs->items[i].is_elsewhere)
			return true;
	}
	return false;
}

/* Get a number of the name, and go behind it. */
static bool read_size(const char **at, char mark, uint64_t *size)
{
	*size = 0;
	if (*(*at)++ != mark || **at < '0' || **at > '9')
		return false;
	while (**at >= '0' && **at <= '9')
		*size = plus(times(*size, 10), (uint64_t)(*(*at)++ - '0'));
	return true;
}

/*
 * Inductor's C++ template of a product, in a model compiled with
 * TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE=1, has its sizes in its name:
 * "graph_0_gemm_m16n64k32_kernel". For aten::bmm there is such a call for each matrix.
 */
static bool count_template(const char *name, struct flops *flops)
{
	static const char graph[] = "graph_", gemm[] = "gemm_";
	uint64_t m, n, k;

	if (strncmp(name, graph, sizeof(graph) - 1) == 0) {
		name += sizeof(graph) - 1;
		name += strspn(name, "0123456789");
		if (*name++ != '_')
			return false;
	}
	if (strncmp(name, gemm, sizeof(gemm) - 1) != 0)
		return false;
	name += sizeof(gemm) - 1;
	if (!read_size(&name, 'm', &m) || !read_size(&name, 'n', &n) ||
	    !read_size(&name, 'k', &k) || *name != '_')
		return false;
	flops->status = FLOPS_COUNTED;
	return count(flops, times(times(2, m), times(n, k)));
}

static bool uses_packed_weights(const struct row *row)
{
	return row->formula == formula_packed_linear ||
	       row->formula == formula_pointwise_convolution ||
	       row->formula == formula_pointwise_transposed;
}

struct flops torsh_flops_of(const char *name, const struct inputs *inputs)
{
	static const char *const spaces[] = {"aten::", "mkldnn::", "mkl::", "prims::"};
	struct flops flops = {.status = FLOPS_NO_FORMULA};
	const struct row *row = NULL;
	bool is_list = false;

	if (is_of_no_numbers(name) || has_no_data(inputs)) {
		flops.status = has_no_data(inputs) ? FLOPS_NO_DATA : FLOPS_NONE;
		return flops;
	}
	if (count_template(name, &flops))
		return flops;
	for (size_t i = 0; i < sizeof(spaces) / sizeof(*spaces) && !row; i++) {
		if (strncmp(name, spaces[i], strlen(spaces[i])) == 0)
			row = find_operator(name + strlen(spaces[i]), &is_list);
	}
	/* Autograd records a few hand-written operators without their namespace. */
	if (!row && !strchr(name, ':'))
		row = find_operator(name, &is_list);
	if (!row)
		return flops;
	flops.place = row->place;
	if (!row->formula)
		flops.status = FLOPS_NONE;
	else if ((is_list ? formula_list : row->formula)(inputs, row->factor, &flops))
		flops.status = FLOPS_COUNTED;
	/* In place it is another operator to FlopCounterMode, without a formula. */
	if (!row->is_in_counter || is_in_place(name, row) || flops.status != FLOPS_COUNTED)
		flops.counter = 0;
	if (flops.status != FLOPS_COUNTED)
		flops.all = 0;
	if (flops.status == FLOPS_NO_FORMULA && uses_packed_weights(row)) {
		flops.is_packed = true;
		flops.reason = "the weights are packed, and which ones they are is not known";
	}
	flops.is_elsewhere = is_elsewhere(inputs);
	return flops;
}
