/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Windows of time that a report is restricted to: from one time to another, steps, the ranges of
 * one name, or all since a mark. Where several are requested, the window is what they have in
 * common. Steps, ranges and marks are those of each process.
 */
#ifndef TORSH_TIMELINE_WINDOW_H
#define TORSH_TIMELINE_WINDOW_H

#include "tools/timeline/steps.h"

#define WINDOW_OPEN UINT64_MAX /* in place of an end */
/*
 * Times of blocks may differ from those of events by so much, and by that part of them, in old
 * recordings: their writers converted the ones at the end of the run, and the others while it
 * lasted. There a window since a mark begins so much before it.
 */
#define WINDOW_EDGE_NS 100000u
#define WINDOW_EDGE_PART 100000u

/* Times are since the recording began. */
struct window_request {
	bool is_some; /* false: the whole run */
	uint64_t from_ns, to_ns; /* to_ns 0: no end */
	struct steps_choice steps;
	const char *region, *since; /* NAME, or DOMAIN/NAME; NULL: none */
};

struct window_span {
	uint64_t from_ns, to_ns; /* from from_ns on, before to_ns */
};

/* Of one process: in the order of time, without overlap. */
struct time_window {
	struct window_span *spans;
	size_t n, n_room;
	bool is_exact; /* times of blocks compare exactly with those of its spans */
};

struct windows {
	const struct window_request *request;
	struct recorded_process *const *processes;
	struct time_window *items; /* one for each process, in the order given */
	size_t n;
	uint64_t n_marks; /* of the name in request->since, in these processes */
};

/* How much of something lies in a window. */
enum window_part { WINDOW_HAS_NONE, WINDOW_HAS_SOME, WINDOW_HAS_ALL };

/*
 * Find the windows of these processes. request and processes must outlive them. Ends the program
 * with a sentence if no process has such steps, such a range or such a mark.
 */
void torsh_windows_make(struct windows *windows, const struct window_request *request,
			const struct recording *recording,
			struct recorded_process *const *processes, size_t n_processes);

/* Free the windows. */
void torsh_windows_free(struct windows *windows);

/* Returns true if the window contains the time. */
bool torsh_window_has(const struct time_window *window, uint64_t at_ns);

/* Returns true if the window contains some of the time from from_ns on, before to_ns. */
bool torsh_window_overlaps(const struct time_window *window, uint64_t from_ns, uint64_t to_ns);

/*
 * Returns the part of n blocks that were allocated in a window, of which only the times of the
 * first and the last one are known. WINDOW_HAS_SOME: perhaps none or all of them.
 */
enum window_part torsh_window_part(const struct time_window *window, uint64_t n, uint64_t first_ns,
				   uint64_t last_ns);

#endif
