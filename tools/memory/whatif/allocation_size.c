/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/whatif/allocation_size.h"

#include <string.h>

#include "tools/memory/whatif/result_shape.h"

#define BLOCK_GRANULE UINT64_C(512)
#define SPLIT_MIN (UINT64_C(1) << 20) /* larger blocks may have up to so much that isn't used */
#define OPERATORS_MAX 8 /* that are queried, from the innermost outwards */

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + BLOCK_GRANULE - 1) / BLOCK_GRANULE * BLOCK_GRANULE;
}

/* What is known of a block from the operators that are queried in turn. */
struct search {
	const struct batch *batch;
	uint64_t block_bytes;
	uint64_t n_threads; /* of the device at once; 0: unknown */
	bool is_first; /* of its operator */
	/* Before and after a training's passes, what has a parameter's shape belongs to one. */
	bool is_outside;
	bool has_tensors, has_batch; /* among the inputs so far */
	struct inputs inputs;
};

static bool is_exact(const struct search *search, uint64_t bytes)
{
	return bytes && round_up(bytes) == search->block_bytes;
}

/* Whether the block can have been given for so many bytes. */
static bool can_hold(const struct search *search, uint64_t bytes)
{
	uint64_t rounded = round_up(bytes);

	return is_exact(search, bytes) ||
	       (bytes && rounded <= search->block_bytes && search->block_bytes > SPLIT_MIN &&
		search->block_bytes - rounded <= SPLIT_MIN);
}

static bool has_batch(const struct search *search, const struct shape *shape)
{
	if (search->is_outside && torsh_batch_is_parameter(search->batch, shape))
		return false;
	return torsh_batch_dimension(search->batch, shape) != BATCH_NONE;
}

/*
 * Try a shape with elements of each size, the expected one first; 0: unknown. must_be_exact: the
 * block has no more than that, rounded.
 */
static bool fit_shape(const struct search *search, const struct shape *shape, uint64_t item_bytes,
		      bool must_be_exact, uint64_t *bytes)
{
	/* Indices, truth values and sums have sizes of their own. */
	static const uint64_t sizes[] = {4, 1, 8, 2};
	uint64_t n = torsh_shape_elements(shape);
	size_t n_sizes = sizeof(sizes) / sizeof(*sizes) - (item_bytes != 0);

	*bytes = n * item_bytes;
	if (must_be_exact ? is_exact(search, *bytes) : can_hold(search, *bytes))
		return true;
	for (size_t i = 0; i < n_sizes; i++) {
		*bytes = n * sizes[i];
		if (is_exact(search, *bytes) ||
		    (!item_bytes && !must_be_exact && can_hold(search, *bytes)))
			return true;
	}
	return false;
}

/* Returns true if an input explains the block's size: what has no batch only if it is exact. */
static bool fit_input(const struct search *search, const struct input *input, bool must_be_exact,
		      struct allocation_size *size)
{
	uint64_t item_bytes = torsh_input_item_bytes(input);
	struct shape shape;

	if (input->kind != INPUT_TENSOR || input->is_meta || !item_bytes)
		return false;
	shape = torsh_shape_of_memory(input);
	size->part = has_batch(search, &shape) ? SIZE_SCALES : SIZE_FIXED;
	return fit_shape(search, &shape, item_bytes, must_be_exact || size->part == SIZE_FIXED,
			 &size->bytes);
}

/* The input that explains the block best: one with the batch, of the nearest size. */
static bool fit_inputs(const struct search *search, bool must_be_exact,
		       struct allocation_size *found)
{
	bool is_found = false;

	for (uint32_t i = 0; i < search->inputs.n_items; i++) {
		struct allocation_size size = {0};

		if (!fit_input(search, &search->inputs.items[i], must_be_exact, &size))
			continue;
		if (!is_found || size.part < found->part ||
		    (size.part == found->part && size.bytes > found->bytes))
			*found = size;
		is_found = true;
	}
	return is_found;
}

/*
 * Compare the block with the inputs: the results of most operators have the shape of one of them.
 * Exact sizes come first.
 */
static bool compare_inputs(const struct search *search, struct allocation_size *found)
{
	return fit_inputs(search, true, found) || fit_inputs(search, false, found);
}

static void note_inputs(struct search *search)
{
	for (uint32_t i = 0; i < search->inputs.n_items; i++) {
		const struct input *input = &search->inputs.items[i];
		struct shape shape;

		if (input->kind != INPUT_TENSOR || !input->n_dims)
			continue;
		shape = torsh_shape_of_memory(input);
		search->has_tensors = true;
		search->has_batch |= has_batch(search, &shape);
	}
}

/* The second block of a sum: parts of it. */
static bool fit_parts(const struct search *search, struct allocation_size *found)
{
	uint64_t bytes = torsh_reduction_bytes(&found->reduction, search->n_threads);

	if (!can_hold(search, bytes))
		return false;
	found->is_parts = true;
	found->bytes = bytes;
	found->part = found->reduction.has_batch ? SIZE_SCALES : SIZE_FIXED;
	return true;
}

/* Returns true if the operator shows what the block is. */
static bool ask(struct search *search, const struct span *span, struct allocation_size *found)
{
	struct result_shape result;

	torsh_inputs_parse(&search->inputs, torsh_timeline_label(span->process, span->inputs));
	note_inputs(search);
	found->reduction =
		torsh_reduction_of(search->batch, torsh_span_name(span), &search->inputs);
	if (found->reduction.rows && !search->is_first)
		return fit_parts(search, found);
	if (!torsh_result_shape(&result, search->batch, torsh_span_name(span), &search->inputs))
		return compare_inputs(search, found);
	if ((search->is_first || !result.is_product) &&
	    fit_shape(search, &result.shape, result.item_bytes, false, &found->bytes)) {
		result.has_batch &= !search->is_outside ||
				    !torsh_batch_is_parameter(search->batch, &result.shape);
		found->part = result.has_batch ? SIZE_SCALES : SIZE_FIXED;
		return true;
	}
	/* Beside its result a product of matrices allocates the library's workspace. */
	if (result.is_product) {
		*found = (struct allocation_size){.bytes = search->block_bytes, .part = SIZE_FIXED};
		return true;
	}
	return compare_inputs(search, found);
}

/* Whether the block is a parameter's gradient, by its operator or its size. */
static bool is_gradient(const struct search *search, const struct span *span)
{
	return span->phase == PHASE_BACKWARD &&
	       (torsh_batch_has_parameter_of(search->batch, search->block_bytes / 4) ||
		torsh_batch_has_parameter_of(search->batch, search->block_bytes / 2));
}

/* What no operator shows: an input with the batch is taken to be the reason for the size. */
static enum size_part assume(const struct search *search, const struct span *innermost)
{
	if (!search->has_tensors)
		return SIZE_UNKNOWN;
	return search->has_batch && search->block_bytes > BLOCK_GRANULE &&
			       !is_gradient(search, innermost)
		       ? SIZE_ASSUMED
		       : SIZE_FIXED;
}

static bool is_accumulation(const struct span *span)
{
	return strcmp(torsh_span_name(span), "torch::autograd::AccumulateGrad") == 0;
}

struct allocation_size torsh_allocation_size(const struct allocation *allocation)
{
	const struct span *innermost = allocation->innermost, *span = innermost;
	struct search search = {.batch = allocation->batch,
				.block_bytes = allocation->block_bytes,
				.is_first = allocation->is_first,
				.n_threads = allocation->n_threads};
	struct allocation_size found = {0};
	bool is_found = false, is_of_parameters = innermost && innermost->phase == PHASE_OPTIMIZER;

	search.is_outside = innermost && innermost->phase == PHASE_SETUP;
	for (int i = 0; span && i < OPERATORS_MAX; i++) {
		is_of_parameters |= is_accumulation(span);
		is_found = is_found || ask(&search, span, &found);
		span = torsh_span_outer_operator(span);
	}
	if (!is_found) {
		found = (struct allocation_size){0};
		found.bytes = allocation->block_bytes;
		found.part = assume(&search, innermost);
	}
	if (is_of_parameters)
		found.part = SIZE_FIXED;
	return found;
}
