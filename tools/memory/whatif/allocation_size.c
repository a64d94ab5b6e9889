/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/whatif/allocation_size.h"

#include <string.h>

#include "tools/memory/whatif/result_shape.h"

#define BLOCK_GRANULE UINT64_C(512)
#define SPLIT_MIN (UINT64_C(1) << 20) /* larger blocks may have up to so much that isn't used */
#define MULTIPLES_MAX 4 /* of an input's size that a block is compared with */
#define OPERATORS_MAX 8 /* that are asked, from the innermost outwards */

static uint64_t round_up(uint64_t bytes)
{
	return (bytes + BLOCK_GRANULE - 1) / BLOCK_GRANULE * BLOCK_GRANULE;
}

/* What is known of a block from the operators that are asked in turn. */
struct search {
	const struct batch *batch;
	uint64_t block_bytes;
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

/* How a block is compared with the inputs of its operator. */
struct comparison {
	uint64_t multiple; /* of an input's size */
	bool must_be_exact;
};

/* Returns true if an input explains the block's size: what has no batch only if it is exact. */
static bool fit_input(const struct search *search, const struct input *input,
		      struct comparison comparison, struct allocation_size *size)
{
	uint64_t item_bytes = torsh_input_item_bytes(input) * comparison.multiple;
	struct shape shape;

	if (input->kind != INPUT_TENSOR || input->is_meta || !item_bytes)
		return false;
	shape = torsh_shape_of_memory(input);
	size->part = has_batch(search, &shape) ? SIZE_SCALES : SIZE_FIXED;
	if (size->part == SIZE_FIXED && comparison.multiple > 1)
		return false;
	if (comparison.multiple > 1) {
		size->bytes = torsh_shape_elements(&shape) * item_bytes;
		return comparison.must_be_exact ? is_exact(search, size->bytes)
						: can_hold(search, size->bytes);
	}
	return fit_shape(search, &shape, item_bytes,
			 comparison.must_be_exact || size->part == SIZE_FIXED, &size->bytes);
}

/* The input that explains the block best: one with the batch, of the nearest size. */
static bool fit_inputs(const struct search *search, struct comparison comparison,
		       struct allocation_size *found)
{
	bool is_found = false;

	for (uint32_t i = 0; i < search->inputs.n_items; i++) {
		struct allocation_size size;

		if (!fit_input(search, &search->inputs.items[i], comparison, &size))
			continue;
		if (!is_found || size.part < found->part ||
		    (size.part == found->part && size.bytes > found->bytes))
			*found = size;
		is_found = true;
	}
	return is_found;
}

/*
 * Compare the block with the inputs: the results of most operators have the shape of one of them,
 * and what they need meanwhile a multiple. Exact sizes come first.
 */
static bool compare_inputs(const struct search *search, struct allocation_size *found)
{
	for (int is_rough = 0; is_rough < 2; is_rough++) {
		for (uint64_t multiple = 1; multiple <= MULTIPLES_MAX; multiple++) {
			struct comparison comparison = {.multiple = multiple,
							.must_be_exact = !is_rough};

			if (fit_inputs(search, comparison, found))
				return true;
		}
	}
	return false;
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

/* Returns true if the operator says what the block is. */
static bool ask(struct search *search, const struct span *span, struct allocation_size *found)
{
	struct result_shape result;

	torsh_inputs_parse(&search->inputs, torsh_timeline_label(span->process, span->inputs));
	note_inputs(search);
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

/* What no operator says: an input with the batch is taken to be the reason for the size. */
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

struct allocation_size torsh_allocation_size(const struct batch *batch,
					     const struct span *innermost, uint64_t block_bytes,
					     bool is_first)
{
	struct search search = {.batch = batch, .block_bytes = block_bytes, .is_first = is_first};
	struct allocation_size found = {.bytes = block_bytes, .part = SIZE_UNKNOWN};
	bool is_found = false, is_of_parameters = innermost && innermost->phase == PHASE_OPTIMIZER;
	const struct span *span = innermost;

	search.is_outside = innermost && innermost->phase == PHASE_SETUP;
	for (int i = 0; span && i < OPERATORS_MAX; i++) {
		is_of_parameters |= is_accumulation(span);
		is_found = is_found || ask(&search, span, &found);
		span = torsh_span_outer_operator(span);
	}
	if (!is_found)
		found = (struct allocation_size){.bytes = block_bytes,
						 .part = assume(&search, innermost)};
	if (is_of_parameters)
		found.part = SIZE_FIXED;
	return found;
}
