/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The data of `torsh report`'s page, and its two renderings. */
#ifndef TORSH_REPORT_OVERVIEW_H
#define TORSH_REPORT_OVERVIEW_H

#include "tools/analysis/analysis.h"
#include "tools/analysis/critical/bottlenecks.h"
#include "tools/memory/leaks/leaks.h"
#include "tools/memory/peak.h"
#include "tools/report/overview_devices.h"
#include "tools/symbols/symbols.h"

/* The first n_... allocation sites of each list are named and shown. */
struct overview {
	const char *path; /* as the user gave it */
	const struct recording *recording;
	struct recorded_process *const *processes;
	size_t n_processes;
	struct peak highest;
	struct recorded_process *const *unfollowed; /* programs that were not followed */
	size_t n_unfollowed;
	const struct suppress *suppress;
	struct leaks leaks; /* of all processes */
	struct allocation_sites peak, temporary;
	size_t n_leaks, n_peak, n_temporary;
	bool has_timeline; /* the timeline was read, for the next two */
	struct analysis analysis;
	struct critical critical; /* without a reason and a process: not looked for */
	struct bottlenecks bottlenecks;
	struct overview_devices devices;
	struct symbols *symbols;
};

/* Print the page on stdout as text. */
void torsh_overview_text(const struct overview *overview);

/* Print it on stdout as JSON: tools/schema/report.json. */
void torsh_overview_json(const struct overview *overview);

/* What the analysis measured of a process; NULL: the timeline was not read. */
const struct metrics_process *torsh_overview_metrics(const struct overview *overview,
						     const struct recorded_process *process);

/* Sums over the processes of the page. */
struct overview_sums {
	uint64_t allocs, frees, reallocs, alloc_bytes, temporary;
	bool is_sampled; /* some heap: temporary is not known */
	uint64_t size_blocks[PROFILE_SIZE_CLASSES];
	uint64_t waited_ns, ring_bytes, delivered;
	uint64_t n_threads;
};

/* Add up the processes of the page; sizes are in bytes, waited_ns in ns. */
struct overview_sums torsh_overview_sum(const struct overview *overview);

#endif
