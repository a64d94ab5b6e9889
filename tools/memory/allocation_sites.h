/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/memory computes what holds memory: at the end, at the peak, and what grows. Read this file
 * first.
 *
 * Allocation sites: blocks and bytes per stack, as a list that reports narrow down, sort, name and
 * print. Shares are computed from the rows as recording.proto defines.
 */
#ifndef TORSH_MEMORY_ALLOCATION_SITES_H
#define TORSH_MEMORY_ALLOCATION_SITES_H

#include "tools/recording/recording.h"
#include "tools/symbols/stack_view.h"
#include "tools/symbols/symbols.h"

enum sites_of {
	SITES_LIVE, /* blocks that were not freed; those from before a fork are left out */
	SITES_CURRENT, /* likewise, as the heap's sum counts them; without times */
	SITES_PEAK, /* shares at the moment of the highest heap */
	SITES_SESSION_PEAK, /* likewise for the sum of all processes' heaps */
	SITES_ALLOCATED, /* all blocks ever allocated */
	SITES_TEMPORARY, /* freed by their own thread before it allocated another */
	SITES_MAPPED, /* address space at the moment when most was mapped */
};

enum sites_order { ORDER_BYTES, ORDER_BLOCKS, ORDER_USABLE, ORDER_FIRST, ORDER_LAST, ORDER_LOST };

/* The kind of an allocation site's blocks, if it is reported. */
enum holder_what {
	SITE_OF_BLOCKS,
	SITE_OF_TENSORS, /* allocated by a framework's allocator */
	SITE_OF_CACHE, /* reserved by such an allocator, and not allocated */
};

/* Blocks and bytes by class. */
struct class_sums {
	uint64_t blocks[N_BLOCK_CLASSES], bytes[N_BLOCK_CLASSES];
};

struct allocation_site {
	const struct recorded_process *process;
	enum holder_what what;
	uint32_t stack; /* one of them, if several were merged */
	uint64_t blocks, bytes;
	struct estimate_variance variance; /* of blocks and bytes, where those are estimates */
	uint64_t usable_bytes; /* valid if usable_is_known */
	uint64_t first_ns, last_ns; /* valid if has_times */
	bool usable_is_known, has_times;
	struct class_sums
		classes; /* of its blocks, by whether they can be reached; set only for leaks */
	bool is_arena; /* an arena of CPython: torsh_sites_mark_arenas */
	uint32_t mapped_as, mapped_path; /* as in recorded_mapping; 0 for blocks */
	double growth_span; /* steps or seconds of growth (growth/growth.h); 0: it is none */
	/* some of the blocks were a framework's tensors; set only for growth */
	bool is_of_tensors;
	/* labels of the scope of the allocations; 0: none or unknown, PROFILE_SEVERAL */
	uint32_t operator, module;
	/* Steps of the first and the last allocation, each + 1; 0: none or unknown. */
	uint32_t first_step, last_step;
	uint32_t entry; /* equal for sites that torsh_sites_merge_alike merges */
	const struct frame **frames; /* set by torsh_sites_name */
	size_t n_frames;
};

/* Sites that are only counted. */
struct counted_sites {
	size_t n;
	uint64_t blocks, bytes;
};

struct allocation_sites {
	struct allocation_site *items;
	size_t n, n_room;
	struct counted_sites rest; /* those that torsh_sites_collect_first left out */
	enum stack_view view;
	size_t depth; /* innermost frames that are compared; 0: all */
	bool is_unmerged; /* stacks that differ only in the path to a line are not merged */
};

/* Add a site unless it is empty; looks up the scope of its allocations. */
void torsh_sites_add(struct allocation_sites *sites, const struct allocation_site *site);

/* Likewise, for a site with its scope already set. */
void torsh_sites_put(struct allocation_sites *sites, const struct allocation_site *site);

/* Look up the scope of a site's allocations. */
void torsh_sites_find_scope(struct allocation_site *site);

/* Call each for all sites of a process, one after the other: they need no memory. */
void torsh_sites_each(const struct recorded_process *process, enum sites_of what,
		      void (*each)(const struct allocation_site *site, void *context),
		      void *context);

/* Add all sites of a process. */
void torsh_sites_collect(struct allocation_sites *sites, const struct recorded_process *process,
			 enum sites_of what);

/* The sites of processes. */
struct sites_source {
	struct recorded_process *const *processes;
	size_t n_processes;
	enum sites_of what;
};

/*
 * Collect sites merged, as torsh_sites_merge_stacks and, if is_alike, torsh_sites_merge_alike
 * merge them: the n_first that torsh_sites_sort puts first, in any order. The others are counted
 * in sites->rest, which takes less memory than to have them. sites->depth is 0.
 */
void torsh_sites_collect_first(struct allocation_sites *sites, const struct sites_source *source,
			       bool is_alike, enum sites_order order, size_t n_first,
			       struct symbols *symbols);

/* Returns the site of a row of the process's totals, with its share of the peak; may be empty. */
struct allocation_site torsh_sites_peak_of(const struct recorded_process *process, size_t row);

/* Mark CPython's arenas among the mappings; call before stacks are merged. */
void torsh_sites_mark_arenas(struct allocation_sites *sites, struct symbols *symbols);

/* Add a site to one that it is merged with. */
void torsh_sites_merge_into(struct allocation_site *to, const struct allocation_site *from);

/* Merge sites of equal stacks, as sites->view shows them, by the innermost sites->depth frames. */
void torsh_sites_merge_stacks(struct allocation_sites *sites, struct symbols *symbols);

/*
 * Merge sites whose stacks differ only in the path to their lines, as torsh_stack_key defines;
 * after torsh_sites_merge_stacks. Does nothing if is_unmerged or a depth is set, or if the view
 * isn't merged.
 */
void torsh_sites_merge_alike(struct allocation_sites *sites, struct symbols *symbols);

/* Merge equal sites, as compare decides, into the first of them; depth is 0. Keeps the order. */
void torsh_sites_merge_equal(struct allocation_sites *sites,
			     int (*compare)(const struct allocation_site *a,
					    const struct allocation_site *b, size_t depth));

/* Returns less than 0 if torsh_sites_sort puts a before b. */
int torsh_sites_compare_order(enum sites_order order, const struct allocation_site *a,
			      const struct allocation_site *b);

/* Compare the process and the kind of blocks: sites that differ in these are never merged. */
int torsh_sites_compare_kinds(const struct allocation_site *a, const struct allocation_site *b);

/*
 * Sort the largest first (ORDER_FIRST: oldest first; ORDER_LOST: what is lost); ties by bytes,
 * process and stack.
 */
void torsh_sites_sort(struct allocation_sites *sites, enum sites_order order);

/*
 * Likewise, but only the first n_first are the ones that torsh_sites_sort puts there: the others
 * follow in any order.
 */
void torsh_sites_sort_first(struct allocation_sites *sites, enum sites_order order, size_t n_first);

/* Move sites with at least min_bytes to the front; returns their number. Stable. */
size_t torsh_sites_put_large_first(struct allocation_sites *sites, uint64_t min_bytes);

/*
 * Set the frames of the first n_first sites, and merge sites of a process that then look alike
 * (same functions and lines).
 */
void torsh_sites_name(struct allocation_sites *sites, struct symbols *symbols, size_t n_first);

/*
 * Set the frames of all sites. Returns for each the index of the first one that then looks alike,
 * which torsh_sites_name would merge it into; the caller frees them.
 */
size_t *torsh_sites_find_alike(struct allocation_sites *sites, struct symbols *symbols);

/*
 * Find the frames of the first n_first sites before torsh_sites_name, file by file, which takes
 * less memory where they are many.
 */
void torsh_sites_find_frames(const struct allocation_sites *sites, struct symbols *symbols,
			     size_t n_first);

/* Returns the operator that allocated the site's blocks; NULL: none, several, or unknown. */
const char *torsh_site_operator(const struct allocation_site *site);

/* Returns what is mapped at a site, "shared file"; NULL: anonymous memory, or unknown. */
const char *torsh_site_mapped_as(const struct allocation_site *site);

/* Returns the path of the file that is mapped there; NULL: none, several, or unknown. */
const char *torsh_site_mapped_path(const struct allocation_site *site);

/* Returns the module that allocated the blocks; NULL likewise. */
const char *torsh_site_module(const struct allocation_site *site);

/* Add up the blocks and bytes of all sites, also of the rest. */
void torsh_sites_sum(const struct allocation_sites *sites, uint64_t *blocks, uint64_t *bytes);

/* Returns the variance of these sums. */
struct estimate_variance torsh_sites_variance(const struct allocation_sites *sites);

/* Free the sites. */
void torsh_sites_free(struct allocation_sites *sites);

#endif
