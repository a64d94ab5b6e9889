/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/allocator/block_set.h"

#include <string.h>

#include "tools/base/containers/array.h"

static bool is_before(const struct block_set *set, const struct allocator_block *block,
		      uint64_t size, uint64_t address)
{
	if (set->is_by_size && block->size != size)
		return block->size < size;
	return block->address < address;
}

size_t torsh_block_set_find(const struct block_set *set, uint64_t size, uint64_t address)
{
	size_t first = 0, end = set->n;

	while (first < end) {
		size_t middle = first + (end - first) / 2;

		if (is_before(set, set->items[middle], size, address))
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

void torsh_block_set_add(struct block_set *set, struct allocator_block *block)
{
	size_t at = torsh_block_set_find(set, block->size, block->address);

	set->items = torsh_array_reserve(set->items, set->n, &set->n_room, sizeof(*set->items));
	memmove(&set->items[at + 1], &set->items[at], (set->n - at) * sizeof(*set->items));
	set->items[at] = block;
	set->n++;
}

void torsh_block_set_remove(struct block_set *set, const struct allocator_block *block)
{
	size_t at = torsh_block_set_find(set, block->size, block->address);

	set->n--;
	memmove(&set->items[at], &set->items[at + 1], (set->n - at) * sizeof(*set->items));
}
