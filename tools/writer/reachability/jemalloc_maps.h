/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a jemalloc 5 has mapped whose calls are not recorded: the agent's own, where that serves the
 * program. It is recognised by what it writes at the begin of the memory for its own tables.
 */
#ifndef TORSH_WRITER_REACHABILITY_JEMALLOC_MAPS_H
#define TORSH_WRITER_REACHABILITY_JEMALLOC_MAPS_H

#include <stdbool.h>

#include "tools/writer/reachability/heap_ranges.h"

/*
 * The first words of memory for tables: base_block_t with the edata_t (extent_t before 5.3) of what
 * is still free there.
 */
enum jemalloc_word {
	JEMALLOC_BLOCK_BYTES,
	JEMALLOC_NEXT_BLOCK,
	JEMALLOC_FREE_BITS,
	JEMALLOC_FREE_AT,
	JEMALLOC_FREE_BYTES,
	N_JEMALLOC_WORDS
};

/* Returns whether memory for tables begins at the address, with these words, in the area. */
bool torsh_jemalloc_is_base(const struct memory_area *area, uint64_t at,
			    const uint64_t words[N_JEMALLOC_WORDS]);

/*
 * Add the tables, and the extents that they describe; torsh_heap_ranges_sort is called afterwards.
 */
void torsh_jemalloc_maps_add(struct heap_ranges *ranges, const struct memory_areas *areas,
			     const struct memory_reader *reader);

#endif
