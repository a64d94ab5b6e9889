/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/device/owners/free_blocks.h"

#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/device/memory/device_block_table.h"

static bool is_chosen(const struct free_blocks_choice *choice, const struct device_block *block)
{
	bool is_private = block->ordinal < choice->n_private && choice->is_private[block->ordinal];

	return block->is_alive && block->scope == choice->scope &&
	       block->ordinal < choice->n_ordinals && choice->is_managed[block->ordinal] &&
	       is_private == choice->wants_private;
}

static int compare_tensors(const void *a, const void *b)
{
	const struct device_tensor *x = *(const struct device_tensor *const *)a;
	const struct device_tensor *y = *(const struct device_tensor *const *)b;

	return (x->address > y->address) - (x->address < y->address);
}

/* Returns the live tensors by address, n of them; the caller frees the array. */
static const struct device_tensor **sort_tensors(const struct device_blocks *blocks, size_t *n)
{
	const struct device_tensor **tensors =
		torsh_need_items(NULL, 0, blocks->n_tensors, sizeof(*tensors));

	*n = 0;
	for (size_t i = 0; i < blocks->n_tensors; i++) {
		if (blocks->tensors[i].is_alive)
			tensors[(*n)++] = &blocks->tensors[i];
	}
	if (*n)
		qsort(tensors, *n, sizeof(*tensors), compare_tensors);
	return tensors;
}

static void add_gap(struct free_blocks *found, uint64_t bytes)
{
	if (!bytes)
		return;
	found->n++;
	found->bytes += bytes;
	if (bytes > found->largest_bytes)
		found->largest_bytes = bytes;
}

struct search {
	const struct device_tensor **tensors;
	size_t n, next;
	struct free_blocks found;
};

static void search_range(struct search *search, uint64_t start, uint64_t end)
{
	uint64_t at = start;

	for (; search->next < search->n; search->next++) {
		const struct device_tensor *tensor = search->tensors[search->next];
		uint64_t tensor_end = tensor->address + tensor->bytes;

		if (tensor->address >= end)
			break;
		if (tensor_end <= at)
			continue;
		if (tensor->address > at)
			add_gap(&search->found, tensor->address - at);
		at = tensor_end;
		if (at >= end)
			return;
	}
	add_gap(&search->found, end - at);
}

struct free_blocks torsh_free_blocks(const struct device_blocks *blocks,
				     const struct free_blocks_choice *choice)
{
	const struct address_ranges *ranges = &blocks->ranges[SPACE_ADDRESS];
	const struct address_range *range;
	struct search search = {0};
	uint64_t start = 0, end = 0;

	search.tensors = sort_tensors(blocks, &search.n);
	for (uint64_t at = 0; (range = torsh_address_ranges_above(ranges, at)); at = range->end) {
		const struct device_block *block = &blocks->blocks[range->owner];
		bool is_page = torsh_device_space(block->kind) == SPACE_HANDLE;

		if (!is_chosen(choice, block))
			continue;
		if (is_page && range->start == end) {
			end = range->end;
			continue;
		}
		if (end > start)
			search_range(&search, start, end);
		start = range->start;
		/* The next segment may touch this one, but only pages are joined. */
		end = range->end;
	}
	if (end > start)
		search_range(&search, start, end);
	free(search.tensors);
	return search.found;
}
