/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/containers/row_index.h"

#define GROUP_BITS 6 /* a group has a bit for each of its numbers */

struct row_group {
	uint64_t set;
	uint32_t first; /* row of the lowest number that is set; the next ones follow */
};

void torsh_row_index_destroy(struct row_index *index)
{
	torsh_sparse_array_destroy(&index->groups);
	if (index->others.slots)
		torsh_key_index_destroy(&index->others);
	*index = (struct row_index){0};
}

static uint64_t bit_of(uint32_t number)
{
	return UINT64_C(1) << (number & ((1u << GROUP_BITS) - 1));
}

uint32_t torsh_row_index_find(const struct row_index *index, uint32_t number)
{
	const struct row_group *group =
		torsh_sparse_array_find(&index->groups, number >> GROUP_BITS);
	uint64_t bit = bit_of(number);
	const struct key_slot *slot;

	if (!group)
		return ROW_INDEX_NONE;
	if (group->set & bit)
		return group->first + (uint32_t)__builtin_popcountll(group->set & (bit - 1));
	if (!index->others.slots)
		return ROW_INDEX_NONE;
	slot = torsh_key_index_find(&index->others, (uint64_t)number + 1);
	return slot->key ? slot->number : ROW_INDEX_NONE;
}

/* Returns whether the row follows those of the group's numbers, which are all lower. */
static bool follows(const struct row_group *group, uint64_t bit, uint32_t row)
{
	return group->set < bit && row == group->first + (uint32_t)__builtin_popcountll(group->set);
}

void torsh_row_index_add(struct row_index *index, uint32_t number, uint32_t row)
{
	struct row_group *group;
	uint64_t bit = bit_of(number);

	if (!index->groups.item_bytes)
		torsh_sparse_array_create(&index->groups, sizeof(*group));
	group = torsh_sparse_array_at(&index->groups, number >> GROUP_BITS);
	if (!group->set)
		group->first = row;
	if (!group->set || follows(group, bit, row)) {
		group->set |= bit;
		return;
	}
	if (!index->others.slots)
		torsh_key_index_create(&index->others);
	torsh_key_index_fill(&index->others,
			     torsh_key_index_find(&index->others, (uint64_t)number + 1),
			     (uint64_t)number + 1, row);
}

size_t torsh_row_index_room(const struct row_index *index)
{
	return torsh_sparse_array_room(&index->groups) << GROUP_BITS;
}
