/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The heap of a process over time by allocation site: what each site had live at each of the
 * process's moments (moments.h). Exact at these, as `torsh peak --at` shows them; nothing is known
 * of the time between.
 */
#ifndef TORSH_MEMORY_HEAP_SERIES_H
#define TORSH_MEMORY_HEAP_SERIES_H

#include "tools/base/containers/sparse_array.h"
#include "tools/memory/moments.h"

/* What a site has live at a moment. */
struct site_amount {
	uint64_t bytes, blocks;
};

/* A recorded stack, and the index of its site. */
struct series_stack {
	uint32_t stack, site;
};

struct heap_series {
	struct memory_moments moments;
	/*
	 * Merged as reports merge them, named, and with the bytes and blocks of their own highest
	 * moment; the one with most bytes is items[1]. items[0]: the small ones, added up, without
	 * a stack.
	 */
	struct allocation_sites sites;
	size_t n_others; /* number of these */
	struct series_stack *stacks;
	size_t n_stacks, stacks_room;
	struct sparse_array number_of; /* uint32_t by stack: its index in stacks + 1 */
};

/*
 * Make the series of a process; without moments if its heap was not recorded. is_all: no site is
 * small. Else those are that never have a thousandth of the peak, and allocate less than a
 * thousandth of all blocks and bytes.
 */
void torsh_heap_series_make(struct heap_series *series, struct recorded_process *process,
			    struct symbols *symbols, bool is_all);

/* Free the series. */
void torsh_heap_series_free(struct heap_series *series);

/* Call each for all moments in the order of time; amounts has one item for each site. */
void torsh_heap_series_each(const struct heap_series *series,
			    void (*each)(const struct heap_series *series, size_t moment,
					 const struct site_amount *amounts, void *context),
			    void *context);

/* Returns the blocks and bytes of that kind of each site; the caller frees them. */
struct site_amount *torsh_heap_series_sum(const struct heap_series *series, enum sites_of what);

#endif
