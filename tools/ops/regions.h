/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The program's own annotations, summed: number and duration of its ranges, number of its marks,
 * statistics of its values. One entry per name, domain, category and source, over all selected
 * processes and threads. Ranges and marks count if they began in the pre-pass's steps, values
 * always.
 */
#ifndef TORSH_OPS_REGIONS_H
#define TORSH_OPS_REGIONS_H

#include "tools/base/containers/intern.h"
#include "tools/timeline/prepass/prepass.h"

enum region_kind {
	REGION_RANGE,
	REGION_MARK,
	REGION_SCALAR,
	REGION_COUNTER,
	REGION_SAMPLE,
	N_REGION_KINDS
};

struct region {
	enum region_kind kind;
	uint32_t source; /* enum range_source */
	const char *name, *domain, *category; /* NULL: none */
	const struct recorded_process *process; /* by thread: its process; otherwise NULL */
	uint32_t thread; /* by thread: row of the process's threads */
	uint32_t n_threads;
	uint64_t n; /* number of spans, marks or values */
	uint64_t total_ns, min_ns, max_ns; /* of ranges */
	uint64_t n_left_open; /* spans counted as ended with their process */
	double first, last, min, max, sum; /* of values */
};

struct region_tables;

struct regions {
	/* The request: set before torsh_regions_find. */
	bool by_thread, has_source;
	uint32_t source;

	struct region *items;
	size_t n, n_room;
	uint64_t n_steps, n_unpaired_ends;
	struct intern texts;
	struct region_tables *tables;
};

/* Sum up the timelines of the pre-pass's processes. Returns 0 or -errno. */
int torsh_regions_find(struct regions *regions, const struct recording *recording,
		       const struct prepass *prepass);

/* Free the regions. */
void torsh_regions_free(struct regions *regions);

/* Returns the name that the program gave a thread, or NULL: then the kernel's name applies. */
const char *torsh_regions_thread_name(const struct regions *regions,
				      const struct recorded_process *process, uint32_t thread);

/* Returns "torsh", "nvtx", "itt", "module" or "unknown". */
const char *torsh_regions_source(uint32_t source);

#endif
