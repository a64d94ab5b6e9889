/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ops/inductor/packed_weights.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/timeline/inputs.h"

/* Operators that use packed weights, and those that pack them. */
enum packing { PACKED_LINEAR, PACKED_CONVOLUTION, PACKED_TRANSPOSED, N_PACKINGS };

static const struct {
	const char *packs, *uses; /* uses: also with an underscore behind it */
	uint32_t n_lists; /* of numbers that both have: padding, strides and the like */
} packings[N_PACKINGS] = {
	[PACKED_LINEAR] = {"mkldnn::_reorder_linear_weight", "mkldnn::_linear_pointwise", 0},
	[PACKED_CONVOLUTION] = {"mkldnn::_reorder_convolution_weight",
				"mkldnn::_convolution_pointwise", 3},
	[PACKED_TRANSPOSED] = {"mkldnn::_reorder_convolution_transpose_weight",
			       "mkldnn::_convolution_transpose_pointwise", 4},
};

struct packed {
	const struct recorded_process *process;
	enum packing packing;
	char *inputs; /* as text */
};

struct packed_weights {
	struct packed *items;
	size_t n, n_room;
};

struct packed_weights *torsh_packed_weights_create(void)
{
	return torsh_need(calloc(1, sizeof(struct packed_weights)));
}

void torsh_packed_weights_destroy(struct packed_weights *weights)
{
	for (size_t i = 0; i < weights->n; i++)
		free(weights->items[i].inputs);
	free(weights->items);
	free(weights);
}

bool torsh_packs_weights(const char *name)
{
	for (size_t i = 0; i < N_PACKINGS; i++) {
		if (strcmp(name, packings[i].packs) == 0)
			return true;
	}
	return false;
}

void torsh_packed_weights_add(struct packed_weights *weights,
			      const struct recorded_process *process, const char *name,
			      const char *inputs)
{
	enum packing packing = PACKED_LINEAR;

	if (!inputs)
		return;
	while (strcmp(name, packings[packing].packs) != 0)
		packing++;
	weights->items = torsh_array_reserve(weights->items, weights->n, &weights->n_room,
					     sizeof(*weights->items));
	weights->items[weights->n++] =
		(struct packed){process, packing, torsh_need(strdup(inputs))};
}

/* ---- which of them fits ---------------------------------------------------------------------- */

/* An operator that uses packed weights, and what is known of these. */
struct use {
	enum packing packing;
	const struct input *x, *bias; /* bias: NULL if there is none */
	uint32_t weight; /* which input it is */
};

static const struct input *tensor_at(const struct inputs *inputs, uint32_t i)
{
	const struct input *input = torsh_inputs_get(inputs, i);

	return input && input->kind == INPUT_TENSOR && input->n_dims ? input : NULL;
}

/* In place or added to, the operator has another tensor before or after x. */
static bool find_use(const char *name, const struct inputs *inputs, struct use *use)
{
	size_t n;
	const struct input *weight;
	bool is_in_place;

	for (use->packing = PACKED_LINEAR; use->packing < N_PACKINGS; use->packing++) {
		n = strlen(packings[use->packing].uses);
		if (strncmp(name, packings[use->packing].uses, n) == 0 &&
		    (!name[n] || strcmp(name + n, "_") == 0))
			break;
	}
	if (use->packing == N_PACKINGS)
		return false;
	is_in_place = name[n] == '_';
	use->weight = tensor_at(inputs, 1) ? 2 : 1;
	weight = torsh_inputs_get(inputs, use->weight);
	use->x = tensor_at(inputs, is_in_place ? 1 : 0);
	use->bias = tensor_at(inputs, use->weight + 1);
	return use->x && weight && weight->kind == INPUT_OTHER;
}

/* Whether both are the same number, or lists of the same numbers. */
static bool are_equal(const struct input *a, const struct input *b)
{
	if (!a || !b || a->kind != b->kind)
		return false;
	if (a->kind == INPUT_INTEGER)
		return a->integer == b->integer;
	if (a->kind != INPUT_LIST || a->n_items != b->n_items)
		return false;
	for (uint32_t i = 1; i <= a->n_items; i++) {
		if (a[i].kind != INPUT_INTEGER || b[i].kind != INPUT_INTEGER ||
		    a[i].integer != b[i].integer)
			return false;
	}
	return true;
}

static bool fits_linear(const struct use *use, const struct input *weight)
{
	return weight->n_dims == 2 && weight->dims[1] == use->x->dims[use->x->n_dims - 1] &&
	       (!use->bias || use->bias->dims[0] == weight->dims[0]);
}

/* The lists are the second input and on of what packs, and behind the bias of what uses it. */
static bool fits_convolution(const struct use *use, const struct inputs *of_use,
			     const struct inputs *of_packing, const struct input *weight)
{
	uint32_t n_lists = packings[use->packing].n_lists;
	const struct input *groups = torsh_inputs_get(of_packing, 1 + n_lists);
	bool is_transposed = use->packing == PACKED_TRANSPOSED;
	int64_t n_in, n_out;

	if (weight->n_dims < 3 || weight->n_dims != use->x->n_dims || !groups ||
	    groups->kind != INPUT_INTEGER || groups->integer < 1)
		return false;
	for (uint32_t i = 0; i <= n_lists; i++) {
		if (!are_equal(torsh_inputs_get(of_packing, 1 + i),
			       torsh_inputs_get(of_use, use->weight + 2 + i)))
			return false;
	}
	if (__builtin_mul_overflow(weight->dims[1], groups->integer, &n_in))
		return false;
	n_out = is_transposed ? n_in : weight->dims[0];
	n_in = is_transposed ? weight->dims[0] : n_in;
	return n_in == use->x->dims[1] && (!use->bias || use->bias->dims[0] == n_out);
}

/* Whether x has the sizes that the weights were packed for: the last input of what packs. */
static bool is_for(const struct use *use, const struct inputs *of_packing)
{
	const struct input *sizes = torsh_inputs_get(of_packing, of_packing->n - 1);
	int64_t n = 1;

	for (uint32_t i = 0; i + 1 < use->x->n_dims; i++) {
		if (__builtin_mul_overflow(n, use->x->dims[i], &n))
			return false;
	}
	if (use->packing == PACKED_LINEAR)
		return sizes && sizes->kind == INPUT_INTEGER && sizes->integer == n;
	if (!sizes || sizes->kind != INPUT_LIST || sizes->n_items != use->x->n_dims)
		return false;
	for (uint32_t i = 0; i < use->x->n_dims; i++) {
		if (sizes[1 + i].integer != use->x->dims[i])
			return false;
	}
	return true;
}

/* The weights that fit; those that were packed for x's sizes go before others. */
struct fitting {
	char *sizes; /* as text; NULL: none */
	bool is_for_x, are_several;
};

static void take(struct fitting *fitting, const struct input *weight, bool is_for_x)
{
	char *sizes;

	if (fitting->sizes && fitting->is_for_x && !is_for_x)
		return;
	sizes = torsh_need(strndup(weight->text, weight->n_text));
	if (is_for_x && !fitting->is_for_x) {
		free(fitting->sizes);
		*fitting = (struct fitting){.sizes = sizes, .is_for_x = true};
		return;
	}
	if (fitting->sizes)
		fitting->are_several |= strcmp(sizes, fitting->sizes) != 0;
	free(fitting->sizes);
	fitting->sizes = sizes;
}

/* Returns the text with the sizes in place of the weight. */
static char *put_weight(const char *text, const struct input *weight, const char *sizes)
{
	return torsh_need_text("%.*s%s%s", (int)(weight->text - text), text, sizes,
			       weight->text + weight->n_text);
}

char *torsh_packed_weights_fill(const struct packed_weights *weights,
				const struct recorded_process *process, const char *name,
				const char *text)
{
	struct inputs *inputs = torsh_need_items(NULL, 0, 2, sizeof(*inputs));
	struct fitting fitting = {0};
	struct use use;
	char *filled = NULL;
	bool is_use;

	torsh_inputs_parse(&inputs[0], text);
	is_use = find_use(name, &inputs[0], &use);
	for (size_t i = 0; is_use && i < weights->n; i++) {
		const struct packed *packed = &weights->items[i];
		const struct input *weight;

		if (packed->process != process || packed->packing != use.packing)
			continue;
		torsh_inputs_parse(&inputs[1], packed->inputs);
		weight = tensor_at(&inputs[1], 0);
		if (weight && (use.packing == PACKED_LINEAR
				       ? fits_linear(&use, weight)
				       : fits_convolution(&use, &inputs[0], &inputs[1], weight)))
			take(&fitting, weight, is_for(&use, &inputs[1]));
	}
	if (fitting.sizes && !fitting.are_several)
		filled = put_weight(text, torsh_inputs_get(&inputs[0], use.weight), fitting.sizes);
	free(fitting.sizes);
	free(inputs);
	return filled;
}
