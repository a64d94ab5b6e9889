/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Disjoint address ranges, each with the number of its owner: a treap ordered by start. Removal
 * splits ranges at the boundaries. Adjacent ranges are never merged.
 */
#ifndef TORSH_WRITER_FOLD_TABLES_ADDRESS_RANGES_H
#define TORSH_WRITER_FOLD_TABLES_ADDRESS_RANGES_H

#include <stddef.h>
#include <stdint.h>

struct range {
	uint64_t start, end; /* end > start */
	uint32_t owner;
};

struct range_node;

struct ranges {
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
typedef void ranges_cut_f(void *context, uint32_t owner, int n, uint64_t bytes);

/* Create an empty set. */
void torsh_ranges_create(struct ranges *ranges);

/* Free the set. */
void torsh_ranges_destroy(struct ranges *ranges);

/*
 * Remove [start, end). cut is called for each range that loses bytes, in ascending order; it must
 * not change ranges.
 */
void torsh_ranges_remove(struct ranges *ranges, uint64_t start, uint64_t end, ranges_cut_f *cut,
			 void *context);

/* Add [start, end), end > start. No range may overlap it: call torsh_ranges_remove first. */
void torsh_ranges_add(struct ranges *ranges, uint64_t start, uint64_t end, uint32_t owner);

/* Returns the number of bytes of [start, end) that ranges cover; 0 if end <= start. */
uint64_t torsh_ranges_covered(const struct ranges *ranges, uint64_t start, uint64_t end);

/* Returns the first range that ends above address, or NULL. */
const struct range *torsh_ranges_above(const struct ranges *ranges, uint64_t address);

#endif
