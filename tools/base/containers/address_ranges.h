/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Disjoint address ranges, each with the number of its owner: a treap ordered by start. Look-ups
 * are by any address inside of a range, which a hash map can't do. Removal splits ranges at the
 * boundaries. Adjacent ranges are never merged.
 */
#ifndef TORSH_BASE_CONTAINERS_ADDRESS_RANGES_H
#define TORSH_BASE_CONTAINERS_ADDRESS_RANGES_H

#include <stddef.h>
#include <stdint.h>

struct address_range {
	uint64_t start, end; /* end > start */
	uint32_t owner;
};

struct range_node;

struct address_ranges {
	struct range_node *nodes; /* by number; [0]: none */
	uint32_t n_nodes;
	size_t capacity;
	uint32_t root, free; /* free nodes are linked by left */
	uint32_t n_ranges;
	uint64_t random;
};

/*
 * Called when a range loses bytes: n is -1 if it is gone, 0 if it lost an end, 1 if it was split in
 * two.
 */
typedef void address_ranges_cut_f(void *context, uint32_t owner, int n, uint64_t bytes);

/* Create an empty set. */
void torsh_address_ranges_create(struct address_ranges *ranges);

/* Free the set. */
void torsh_address_ranges_destroy(struct address_ranges *ranges);

/*
 * Remove [start, end). cut is called for each range that loses bytes, in ascending order; it must
 * not change ranges.
 */
void torsh_address_ranges_remove(struct address_ranges *ranges, uint64_t start, uint64_t end,
				 address_ranges_cut_f *cut, void *context);

/*
 * Add [start, end), end > start. No range may overlap it: call torsh_address_ranges_remove first.
 */
void torsh_address_ranges_add(struct address_ranges *ranges, uint64_t start, uint64_t end,
			      uint32_t owner);

/* Returns the number of bytes of [start, end) that ranges cover; 0 if end <= start. */
uint64_t torsh_address_ranges_covered(const struct address_ranges *ranges, uint64_t start,
				      uint64_t end);

/* Remove one range as a whole. */
void torsh_address_ranges_drop(struct address_ranges *ranges, const struct address_range *range);

/* Returns the first range that ends above address, or NULL; valid until the next change. */
const struct address_range *torsh_address_ranges_above(const struct address_ranges *ranges,
						       uint64_t address);

#endif
