/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The moments of a process at which its heap is known by stack: its start, its peak, its end, and
 * those that the writer kept: at regular times, at ends of steps, at marks of the program, when a
 * sample of the resident set was higher than all before, and the peaks of windows that the program
 * opened.
 */
#ifndef TORSH_MEMORY_MOMENTS_H
#define TORSH_MEMORY_MOMENTS_H

#include "tools/memory/allocation_sites.h"

/* KIND(NAME, name) */
#define MEMORY_MOMENT_KINDS \
	KIND(START, start)  \
	KIND(TIME, time)    \
	KIND(STEP, step)    \
	KIND(MARK, mark)    \
	KIND(RSS, rss) KIND(JOINT, joint) KIND(PEAK, peak) KIND(WINDOW, window) KIND(END, end)

enum memory_moment_kind {
#define KIND(NAME, name) MEMORY_AT_##NAME,
	MEMORY_MOMENT_KINDS
#undef KIND
};

extern const char *const torsh_memory_moment_names[];

struct memory_moment {
	enum memory_moment_kind kind;
	uint64_t at_ns; /* since the session's start */
	uint64_t bytes, blocks;
	const char *mark; /* its name; NULL: it is no mark, or its name is unknown */
	bool has_step;
	uint64_t step; /* that ended */
	uint64_t resident_bytes; /* the sample; valid for MEMORY_AT_RSS */
	size_t index; /* of the process's moments or window_peaks, where the writer kept it */
};

struct memory_moments {
	const struct recorded_process *process; /* must outlive them */
	struct memory_moment *items; /* in the order of time */
	size_t n, n_room;
	size_t n_kept; /* stored by the writer */
	size_t n_damaged; /* left out, because the recording lacks some of their stacks */
};

/* Returns the time of the moment MEMORY_AT_END. */
uint64_t torsh_memory_end_ns(const struct recorded_process *process);

/* Collect the moments of a process; none if its heap was not recorded. */
void torsh_memory_moments_make(struct memory_moments *moments,
			       const struct recorded_process *process);

/* Free the moments. */
void torsh_memory_moments_free(struct memory_moments *moments);

/* Returns the moment nearest to a time; NULL: there is none. */
const struct memory_moment *torsh_memory_moment_near(const struct memory_moments *moments,
						     uint64_t at_ns);

/* Returns the end of the step with the nearest number; NULL: no end of a step is known. */
const struct memory_moment *torsh_memory_moment_of_step(const struct memory_moments *moments,
							uint64_t step);

/* Returns the first moment at a mark of that name, or NULL. */
const struct memory_moment *torsh_memory_moment_of_mark(const struct memory_moments *moments,
							const char *name);

/* Returns the moment at the highest sample of the resident set, or NULL. */
const struct memory_moment *torsh_memory_moment_of_rss(const struct memory_moments *moments);

/* Returns the moment with most bytes from from_ns on and before to_ns, or NULL. */
const struct memory_moment *torsh_memory_moment_highest(const struct memory_moments *moments,
							uint64_t from_ns, uint64_t to_ns);

/* The heap's highest sum in a window. */
struct window_sum {
	bool is_known; /* false: an older version recorded it */
	bool is_exact; /* false: it may have been higher at the window's edges */
	uint64_t bytes, at_ns;
};

/* Returns the highest sum from from_ns on and before to_ns: of the sums between the moments. */
struct window_sum torsh_memory_window_sum(const struct memory_moments *moments, uint64_t from_ns,
					  uint64_t to_ns);

/* Add the allocation sites with live blocks at one of these moments. */
void torsh_memory_moment_sites(struct allocation_sites *sites, const struct memory_moments *moments,
			       const struct memory_moment *moment);

/*
 * Add what changed from one moment to another: bytes and blocks are differences modulo 2^64, so
 * that merging stays correct.
 */
void torsh_memory_moment_change(struct allocation_sites *sites,
				const struct memory_moments *moments,
				const struct memory_moment *from, const struct memory_moment *to);

#endif
