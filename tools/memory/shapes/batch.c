/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/shapes/batch.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/memory/shapes/weights.h"

#define HASH_START UINT64_C(0xcbf29ce484222325)
#define HASH_FACTOR UINT64_C(0x100000001b3)
#define ELEMENTS_MAX (UINT64_C(1) << 46)

/* ---- shapes ---------------------------------------------------------------------------------- */

struct shape torsh_shape_of(const struct input *tensor)
{
	struct shape shape = {.n = tensor->n_dims};

	memcpy(shape.dims, tensor->dims, sizeof(shape.dims));
	return shape;
}

struct shape torsh_shape_of_memory(const struct input *tensor)
{
	struct shape shape = torsh_shape_of(tensor);
	int64_t strides[INPUT_DIMS_MAX];

	if (!tensor->has_strides)
		return shape;
	memcpy(strides, tensor->strides, sizeof(strides));
	for (uint32_t i = 1; i < shape.n; i++) {
		for (uint32_t k = i; k > 0 && strides[k] > strides[k - 1]; k--) {
			int64_t stride = strides[k], dim = shape.dims[k];

			strides[k] = strides[k - 1];
			strides[k - 1] = stride;
			shape.dims[k] = shape.dims[k - 1];
			shape.dims[k - 1] = dim;
		}
	}
	return shape;
}

uint64_t torsh_shape_elements(const struct shape *shape)
{
	uint64_t n = 1;

	for (uint32_t i = 0; i < shape->n; i++) {
		if (shape->dims[i] <= 0 || (uint64_t)shape->dims[i] > ELEMENTS_MAX / n)
			return 0;
		n *= (uint64_t)shape->dims[i];
	}
	return n;
}

static uint64_t hash_of(const struct shape *shape)
{
	uint64_t hash = HASH_START;

	for (uint32_t i = 0; i < shape->n; i++)
		hash = (hash ^ (uint64_t)shape->dims[i]) * HASH_FACTOR;
	return hash ? hash : 1;
}

static void put(struct key_index *index, uint64_t key)
{
	struct key_slot *slot = torsh_key_index_find(index, key);

	if (!slot->key)
		torsh_key_index_fill(index, slot, key, 0);
}

static bool has(const struct key_index *index, uint64_t key)
{
	return torsh_key_index_find(index, key)->key;
}

bool torsh_batch_is_parameter(const struct batch *batch, const struct shape *shape)
{
	return has(&batch->parameters, hash_of(shape));
}

bool torsh_batch_has_parameter_of(const struct batch *batch, uint64_t n_elements)
{
	return n_elements && has(&batch->parameter_elements, n_elements);
}

/* Whether a dimension, a multiple of the batch, is none of another meaning. */
static bool is_multiple(const struct batch *batch, int64_t dim)
{
	uint64_t size = (uint64_t)dim;

	return size > batch->size && size % batch->size == 0 &&
	       !has(&batch->parameter_dims, size) && !has(&batch->other_dims, size);
}

/* Whether the first dimension is the batch times the length of a sequence. */
static bool is_flattened(const struct batch *batch, const struct shape *shape)
{
	uint64_t first = (uint64_t)shape->dims[0];

	return shape->n && shape->n <= 2 && first > batch->size && first % batch->size == 0 &&
	       has(&batch->lengths, first / batch->size);
}

int torsh_batch_dimension(const struct batch *batch, const struct shape *shape)
{
	if (!batch->size)
		return BATCH_NONE;
	if (is_flattened(batch, shape))
		return 0;
	if (torsh_batch_is_parameter(batch, shape))
		return BATCH_NONE;
	for (uint32_t i = 0; i < shape->n; i++) {
		if ((uint64_t)shape->dims[i] == batch->size)
			return (int)i;
	}
	/* One dimension is often that of a buffer with anything inside. */
	for (uint32_t i = 0; shape->n > 1 && i < shape->n; i++) {
		if (shape->dims[i] > 0 && is_multiple(batch, shape->dims[i]))
			return (int)i;
	}
	return BATCH_NONE;
}

/* ---- collecting ------------------------------------------------------------------------------ */

struct walker {
	struct batch *batch;
	const struct recorded_process *process;
	struct inputs inputs;
	bool is_second;
};

static void add_parameter(struct batch *batch, const struct input *tensor)
{
	struct shape shape = torsh_shape_of(tensor), memory = torsh_shape_of_memory(tensor);
	uint64_t n_elements = torsh_shape_elements(&shape);

	if (!shape.n || !n_elements)
		return;
	put(&batch->parameters, hash_of(&shape));
	put(&batch->parameters, hash_of(&memory));
	put(&batch->parameter_elements, n_elements);
	for (uint32_t i = 0; i < shape.n; i++)
		put(&batch->parameter_dims, (uint64_t)shape.dims[i]);
}

/* Add every tensor that the optimizer or AccumulateGrad gets, and weights by their position. */
static void add_parameters(struct walker *walker, const struct span *span)
{
	bool is_all = span->phase == PHASE_OPTIMIZER ||
		      strcmp(torsh_span_name(span), "torch::autograd::AccumulateGrad") == 0;
	const struct inputs *inputs = &walker->inputs;

	for (uint32_t i = 0; i < inputs->n_items; i++) {
		if (inputs->items[i].kind == INPUT_TENSOR &&
		    (is_all || torsh_weights_have(torsh_span_name(span), inputs, i)))
			add_parameter(walker->batch, &inputs->items[i]);
	}
}

static void count_leading(struct batch *batch, int64_t size)
{
	for (size_t i = 0; i < batch->n_leading; i++) {
		if (batch->leading[i].size == size) {
			batch->leading[i].n++;
			return;
		}
	}
	batch->leading = torsh_array_reserve(batch->leading, batch->n_leading, &batch->leading_room,
					     sizeof(*batch->leading));
	batch->leading[batch->n_leading++] = (struct dimension_count){.size = size, .n = 1};
}

/* Whether the text of a tensor has it on a device with data. */
static bool is_on_device(const struct input *input)
{
	return input->kind == INPUT_TENSOR && !input->is_meta &&
	       memchr(input->text, '@', input->n_text) != NULL;
}

/* Count the leading dimensions of an operator's inputs, or what lies beside the batch in them. */
static void count_dims(struct walker *walker, const struct input *tensor)
{
	struct shape shape = torsh_shape_of(tensor);
	struct batch *batch = walker->batch;
	int at;

	if (!shape.n || torsh_batch_is_parameter(batch, &shape))
		return;
	if (!walker->is_second) {
		if (shape.dims[0] > 1)
			count_leading(batch, shape.dims[0]);
		return;
	}
	for (at = 0; at < (int)shape.n && (uint64_t)shape.dims[at] != batch->size; at++)
		;
	if (shape.n == 3 && at == 0 && shape.dims[1] > 1)
		put(&batch->lengths, (uint64_t)shape.dims[1]);
	for (int i = 0; at < (int)shape.n && i < (int)shape.n; i++) {
		if (i != at && shape.dims[i] > 1)
			put(&batch->other_dims, (uint64_t)shape.dims[i]);
	}
}

static void see_span(void *context, struct span *span)
{
	struct walker *walker = context;

	if (span->kind != SPAN_OPERATOR || span->process != walker->process)
		return;
	torsh_inputs_parse(&walker->inputs, torsh_timeline_label(span->process, span->inputs));
	if (!walker->is_second)
		add_parameters(walker, span);
	if ((span->phase != PHASE_FORWARD && span->phase != PHASE_LOSS) ||
	    torsh_span_outer_operator(span))
		return;
	for (uint32_t i = 0; i < walker->inputs.n_items; i++) {
		const struct input *input = &walker->inputs.items[i];

		if (is_on_device(input) &&
		    !torsh_weights_have(torsh_span_name(span), &walker->inputs, i))
			count_dims(walker, input);
	}
}

static void choose(struct batch *batch)
{
	uint64_t n = 0;

	for (size_t i = 0; i < batch->n_leading; i++) {
		if (batch->leading[i].n > n) {
			n = batch->leading[i].n;
			batch->size = (uint64_t)batch->leading[i].size;
		}
	}
}

void torsh_batch_collect(struct batch *batch, const struct recording *recording,
			 struct recorded_process *process, const struct prepass *prepass)
{
	static const struct span_visitor visitor = {.begin = see_span};
	struct walker *walker = torsh_need_items(NULL, 0, 1, sizeof(*walker));
	int rc;

	*batch = (struct batch){0};
	torsh_key_index_create(&batch->parameters);
	torsh_key_index_create(&batch->parameter_elements);
	torsh_key_index_create(&batch->parameter_dims);
	torsh_key_index_create(&batch->other_dims);
	torsh_key_index_create(&batch->lengths);
	walker->batch = batch;
	walker->process = process;
	rc = torsh_spans_visit(recording, &process, 1, prepass->unnested, NULL, &visitor, walker,
			       NULL);
	choose(batch);
	walker->is_second = true;
	if (rc == 0 && batch->size)
		rc = torsh_spans_visit(recording, &process, 1, prepass->unnested, NULL, &visitor,
				       walker, NULL);
	free(walker);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", recording->path, strerror(-rc));
}

void torsh_batch_free(struct batch *batch)
{
	torsh_key_index_destroy(&batch->parameters);
	torsh_key_index_destroy(&batch->parameter_elements);
	torsh_key_index_destroy(&batch->parameter_dims);
	torsh_key_index_destroy(&batch->other_dims);
	torsh_key_index_destroy(&batch->lengths);
	free(batch->leading);
}
