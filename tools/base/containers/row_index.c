/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/containers/row_index.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"

#define GROUP_BITS 6 /* a group has a bit for each of its numbers */

static void free_index(struct key_index *index)
{
	if (index->slots)
		torsh_key_index_destroy(index);
}

void torsh_row_index_destroy(struct row_index *index)
{
	free(index->groups);
	free_index(&index->by_number);
	free_index(&index->others);
	*index = (struct row_index){0};
}

static uint64_t bit_of(uint32_t number)
{
	return UINT64_C(1) << (number & ((1u << GROUP_BITS) - 1));
}

static uint64_t key_of_group(uint32_t number)
{
	return (uint64_t)(number >> GROUP_BITS) + 1;
}

uint32_t torsh_row_index_find(const struct row_index *index, uint32_t number)
{
	const struct row_group *group;
	uint64_t bit = bit_of(number);
	const struct key_slot *slot;

	if (!index->by_number.slots)
		return ROW_INDEX_NONE;
	slot = torsh_key_index_find(&index->by_number, key_of_group(number));
	if (!slot->key)
		return ROW_INDEX_NONE;
	group = &index->groups[slot->number];
	if (group->set & bit)
		return group->first + (uint32_t)__builtin_popcountll(group->set & (bit - 1));
	if (!index->others.slots)
		return ROW_INDEX_NONE;
	slot = torsh_key_index_find(&index->others, (uint64_t)number + 1);
	return slot->key ? slot->number : ROW_INDEX_NONE;
}

/* Add a key, which the index doesn't have. */
static void add_key(struct key_index *index, uint64_t key, uint32_t number)
{
	if (!index->slots)
		torsh_key_index_create(index);
	torsh_key_index_fill(index, torsh_key_index_find(index, key), key, number);
}

/* Returns the group of the number, which is empty if it is new. */
static struct row_group *group_of(struct row_index *index, uint32_t number)
{
	uint64_t key = key_of_group(number);
	const struct key_slot *slot =
		index->by_number.slots ? torsh_key_index_find(&index->by_number, key) : NULL;

	if (slot && slot->key)
		return &index->groups[slot->number];
	add_key(&index->by_number, key, index->n_groups);
	index->groups = torsh_array_reserve(index->groups, index->n_groups, &index->groups_room,
					    sizeof(*index->groups));
	return &index->groups[index->n_groups++];
}

/* Returns whether the row follows those of the group's numbers, which are all lower. */
static bool follows(const struct row_group *group, uint64_t bit, uint32_t row)
{
	return group->set < bit && row == group->first + (uint32_t)__builtin_popcountll(group->set);
}

void torsh_row_index_add(struct row_index *index, uint32_t number, uint32_t row)
{
	struct row_group *group = group_of(index, number);
	uint64_t bit = bit_of(number);

	if (!group->set)
		group->first = row;
	if (!group->set || follows(group, bit, row))
		group->set |= bit;
	else
		add_key(&index->others, (uint64_t)number + 1, row);
}
