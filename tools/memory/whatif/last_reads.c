/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/whatif/last_reads.h"

#define ROUND_BYTES 512u /* of the caching allocator */
#define REST_MAX_BYTES (1u << 20) /* of a large block, which is not split off */

bool torsh_can_be_in_block(uint64_t tensor_bytes, uint64_t block_bytes)
{
	uint64_t rounded = (tensor_bytes + ROUND_BYTES - 1) / ROUND_BYTES * ROUND_BYTES;

	return rounded == block_bytes || (rounded > REST_MAX_BYTES && rounded < block_bytes &&
					  block_bytes - rounded <= REST_MAX_BYTES);
}

/* Returns true if a is the likelier input: what was read least, first what waits for that. */
static bool is_likelier(const struct read_block *a, const struct read_block *b)
{
	if (a->n_reads != b->n_reads)
		return a->n_reads < b->n_reads;
	if (a->is_given != b->is_given)
		return a->n_reads ? a->is_given : b->is_given;
	return a->from_ns >= b->from_ns;
}

/* Returns the block that an input is taken for; NULL: none. */
static struct read_block *find_input(const struct call_operator *operator, uint64_t bytes,
				     struct read_block *blocks, size_t n,
				     struct read_block *const *taken, uint32_t n_taken)
{
	struct read_block *found = NULL;

	for (size_t i = 0; i < n; i++) {
		bool is_taken = false;

		if (blocks[i].from_ns >= operator->start_ns || blocks[i].until_ns<
					 operator->start_ns || !torsh_can_be_in_block(
						 bytes, blocks[i].bytes))
			continue;
		for (uint32_t k = 0; k < n_taken; k++)
			is_taken = is_taken || taken[k] == &blocks[i];
		if (!is_taken && (!found || is_likelier(&blocks[i], found)))
			found = &blocks[i];
	}
	return found;
}

static bool allocates(const struct call_operator *operator, const struct read_block * blocks,
		      size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (blocks[i].from_ns >= operator->start_ns && blocks[i]
						 .from_ns <=
						 operator->end_ns && !blocks[i]
						 .is_given)
			return true;
	}
	return false;
}

/* What allocates nothing made a view, or changed its input. */
static void read_inputs(const struct call_operator *operator, struct read_block * blocks, size_t n)
{
	struct read_block *taken[CALL_INPUTS_MAX];
	bool makes_result = !operator->is_in_place && allocates(operator, blocks, n);
	uint32_t n_taken = 0;

	for (uint32_t i = 0; i < operator->n_inputs; i++) {
		struct read_block *input =
			find_input(operator, operator->input_bytes[i], blocks, n, taken, n_taken);

		if (!input)
			continue;
		taken[n_taken++] = input;
		input->last_read_ns = operator->end_ns;
		input->n_reads += makes_result || i > 0;
		input->has_views = !makes_result && !operator->is_in_place;
	}
}

void torsh_last_reads_find(const struct call_operator *operators, size_t n_operators,
			   struct read_block *blocks, size_t n)
{
	size_t n_all = n;

	if (n_operators && operators[0].n_inputs) {
		/* Only the bytes of the tensor are known, and it has a block of that size. */
		blocks[n_all++] = (struct read_block){
			.bytes = (operators[0].input_bytes[0] + ROUND_BYTES - 1) / ROUND_BYTES *
				 ROUND_BYTES,
			.until_ns = UINT64_MAX,
			.is_given = true,
		};
	}
	for (size_t i = 0; i < n_operators; i++)
		read_inputs(&operators[i], blocks, n_all);
	for (size_t i = 0; i < n; i++) {
		if (blocks[i].has_views || !blocks[i].n_reads)
			blocks[i].last_read_ns = 0;
	}
}
