/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Disjoint ranges of address space, each with the number of its owner: a treap by start. Adding
 * takes out what the range covers first; taking out splits ranges at its ends. Neighbours are never
 * joined.
 */
#ifndef TORSH_WRITER_FOLD_TABLES_ADDRESS_RANGES_H
#define TORSH_WRITER_FOLD_TABLES_ADDRESS_RANGES_H

#include <stdint.h>

struct range {
	uint64_t start, end; /* end > start */
	uint32_t owner;
};

struct range_node;

struct ranges {
	struct range_node *nodes; /* by number; 0 is none */
	uint32_t n_nodes, capacity;
	uint32_t root, free; /* free nodes are linked by their left */
	uint32_t n_ranges;
	uint64_t random;
};

/*
 * A range loses bytes by a removal: n is -1 where it is gone, 0 where it lost an end, 1 where it
 * was cut in two.
 */
typedef void ranges_cut_f(void *context, uint32_t owner, int n, uint64_t bytes);

/* Create an empty set. */
void torsh_ranges_create(struct ranges *ranges);

/* Free the set. */
void torsh_ranges_destroy(struct ranges *ranges);

/*
 * Take [start, end) out. cut is called for each range that loses something, upwards; it may not
 * change ranges.
 */
void torsh_ranges_remove(struct ranges *ranges, uint64_t start, uint64_t end, ranges_cut_f *cut,
			 void *context);

/* Add [start, end), end > start, where nothing is: remove it before. */
void torsh_ranges_add(struct ranges *ranges, uint64_t start, uint64_t end, uint32_t owner);

/* Bytes of [start, end) that ranges cover; 0 when end <= start. */
uint64_t torsh_ranges_covered(const struct ranges *ranges, uint64_t start, uint64_t end);

/* The first range that ends above address, or NULL. */
const struct range *torsh_ranges_above(const struct ranges *ranges, uint64_t address);

#endif
