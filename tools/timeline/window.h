/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Windows of time that a report is restricted to: a time range, steps, the ranges of one name, or
 * all since a mark. If several are requested, the window is their intersection. Steps, ranges and
 * marks are those of each process.
 */
#ifndef TORSH_TIMELINE_WINDOW_H
#define TORSH_TIMELINE_WINDOW_H

#include "tools/timeline/steps.h"

#define WINDOW_OPEN UINT64_MAX /* the end of a window without one */
/*
 * In old recordings, the tolerance between times of blocks and of events, in ns and as a fraction
 * of the time: their writers converted times of live blocks at the end of the run, and others
 * during it. There a window since a mark begins this much before it.
 */
#define WINDOW_EDGE_NS 100000u
#define WINDOW_EDGE_PART 100000u

/* At least so old: of so many ns, or allocated before so many steps began. */
struct age {
	uint64_t ns;
	uint64_t n_steps; /* 0: ns counts */
};

/* Times are since the recording began. */
struct window_request {
	bool is_some; /* false: the whole run */
	uint64_t from_ns, to_ns; /* to_ns 0: no end */
	struct steps_choice steps;
	const char *region, *since; /* NAME, or DOMAIN/NAME; NULL: none */
	bool has_older;
	struct age older; /* when the process ended */
};

struct window_span {
	uint64_t from_ns, to_ns; /* from from_ns on, before to_ns */
};

/* The spans of one process, in time order, without overlap. */
struct time_window {
	struct window_span *spans;
	size_t n, n_room;
	bool is_exact; /* times of blocks compare exactly with those of its spans */
};

struct windows {
	const struct window_request *request;
	struct recorded_process *const *processes;
	struct time_window *items; /* parallel to the processes given */
	size_t n;
	uint64_t n_marks; /* of the name in request->since, in these processes */
};

/* How much of a site lies in a window. */
enum window_part { WINDOW_HAS_NONE, WINDOW_HAS_SOME, WINDOW_HAS_ALL };

/*
 * Find the windows of these processes. request and processes must outlive them. Ends the program
 * with a sentence if no process has such steps, such a range or such a mark.
 */
void torsh_windows_make(struct windows *windows, const struct window_request *request,
			const struct recording *recording,
			struct recorded_process *const *processes, size_t n_processes);

/*
 * Returns the time before which what is that old at at_ns was allocated; 0: nothing is. steps may
 * be NULL for an age in ns.
 */
uint64_t torsh_age_limit(const struct age *age, const struct steps *steps, uint64_t at_ns);

/* Free the windows. */
void torsh_windows_free(struct windows *windows);

/* Returns true if the window contains the time. */
bool torsh_window_has(const struct time_window *window, uint64_t at_ns);

/* Returns true if the window contains some of the time from from_ns on, before to_ns. */
bool torsh_window_overlaps(const struct time_window *window, uint64_t from_ns, uint64_t to_ns);

/*
 * Returns how much of n blocks was allocated in a window, if only the times of the first and the
 * last one are known. WINDOW_HAS_SOME: undecided, none to all of them.
 */
enum window_part torsh_window_part(const struct time_window *window, uint64_t n, uint64_t first_ns,
				   uint64_t last_ns);

#endif
