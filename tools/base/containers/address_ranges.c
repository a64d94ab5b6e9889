/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/containers/address_ranges.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"

struct range_node {
	struct address_range range;
	uint32_t left, right;
	uint32_t priority;
};

void torsh_address_ranges_create(struct address_ranges *ranges)
{
	*ranges = (struct address_ranges){.n_nodes = 1, .random = UINT64_C(0x9e3779b97f4a7c15)};
	ranges->nodes = torsh_array_reserve(NULL, 0, &ranges->capacity, sizeof(*ranges->nodes));
}

void torsh_address_ranges_destroy(struct address_ranges *ranges)
{
	free(ranges->nodes);
	*ranges = (struct address_ranges){0};
}

static uint32_t take_node(struct address_ranges *ranges)
{
	uint32_t number = ranges->free;

	if (number) {
		ranges->free = ranges->nodes[number].left;
		return number;
	}
	number = ranges->n_nodes++;
	ranges->nodes = torsh_array_reserve(ranges->nodes, number, &ranges->capacity,
					    sizeof(*ranges->nodes));
	return number;
}

static uint32_t next_random(struct address_ranges *ranges)
{
	ranges->random ^= ranges->random << 13;
	ranges->random ^= ranges->random >> 7;
	ranges->random ^= ranges->random << 17;
	return (uint32_t)(ranges->random >> 32);
}

/* Move ranges that start below `at` to *left and the others to *right. */
static void split_tree(struct address_ranges *ranges, uint32_t tree, uint64_t at, uint32_t *left,
		       uint32_t *right)
{
	while (tree) {
		struct range_node *node = &ranges->nodes[tree];

		if (node->range.start < at) {
			*left = tree;
			left = &node->right;
			tree = node->right;
		} else {
			*right = tree;
			right = &node->left;
			tree = node->left;
		}
	}
	*left = *right = 0;
}

/* All ranges in left are below all ranges in right. */
static uint32_t join_trees(struct address_ranges *ranges, uint32_t left, uint32_t right)
{
	uint32_t tree, *place = &tree;

	while (left && right) {
		struct range_node *l = &ranges->nodes[left], *r = &ranges->nodes[right];

		if (l->priority > r->priority) {
			*place = left;
			place = &l->right;
			left = l->right;
		} else {
			*place = right;
			place = &r->left;
			right = r->left;
		}
	}
	*place = left ? left : right;
	return tree;
}

void torsh_address_ranges_add(struct address_ranges *ranges, uint64_t start, uint64_t end,
			      uint32_t owner)
{
	uint32_t number = take_node(ranges), left, right;

	ranges->nodes[number] = (struct range_node){
		.range = {.start = start, .end = end, .owner = owner},
		.priority = next_random(ranges),
	};
	split_tree(ranges, ranges->root, start, &left, &right);
	ranges->root = join_trees(ranges, join_trees(ranges, left, number), right);
	ranges->n_ranges++;
}

const struct address_range *torsh_address_ranges_above(const struct address_ranges *ranges,
						       uint64_t address)
{
	const struct address_range *found = NULL;
	uint32_t tree = ranges->root;

	while (tree) {
		const struct range_node *node = &ranges->nodes[tree];

		if (node->range.end > address) {
			found = &node->range;
			tree = node->left;
		} else {
			tree = node->right;
		}
	}
	return found;
}

void torsh_address_ranges_drop(struct address_ranges *ranges, const struct address_range *range)
{
	uint32_t left, middle, right, rest;

	split_tree(ranges, ranges->root, range->start, &left, &rest);
	split_tree(ranges, rest, range->start + 1, &middle, &right);
	ranges->root = join_trees(ranges, left, right);
	ranges->nodes[middle].left = ranges->free;
	ranges->free = middle;
	ranges->n_ranges--;
}

void torsh_address_ranges_remove(struct address_ranges *ranges, uint64_t start, uint64_t end,
				 address_ranges_cut_f *cut, void *context)
{
	const struct address_range *found;

	while (start < end && (found = torsh_address_ranges_above(ranges, start)) &&
	       found->start < end) {
		struct address_range whole = *found;
		uint64_t from = whole.start > start ? whole.start : start,
			 until = whole.end < end ? whole.end : end;

		cut(context, whole.owner, (whole.start < from) + (until < whole.end) - 1,
		    until - from);
		torsh_address_ranges_drop(ranges, found);
		if (whole.start < from)
			torsh_address_ranges_add(ranges, whole.start, from, whole.owner);
		if (until < whole.end)
			torsh_address_ranges_add(ranges, until, whole.end, whole.owner);
	}
}

uint64_t torsh_address_ranges_covered(const struct address_ranges *ranges, uint64_t start,
				      uint64_t end)
{
	const struct address_range *range;
	uint64_t covered = 0;

	while (start < end && (range = torsh_address_ranges_above(ranges, start)) &&
	       range->start < end) {
		if (range->start > start)
			start = range->start;
		covered += (range->end < end ? range->end : end) - start;
		start = range->end;
	}
	return covered;
}
