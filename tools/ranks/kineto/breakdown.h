/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What HolisticTraceAnalysis (HTA) says of a rank: the same definitions, so that the numbers are
 * the same. HTA's rules, in short:
 *
 * - where a time stamp has a fraction, starts are rounded up to whole microseconds and ends down.
 *   Kernels below 1 us get a negative length by that; where the sums contradict each other then,
 *   HTA gives up, and here nothing is rounded;
 * - where the ranks have two profiler steps or more, only what was launched before the last step
 *   counts: that one is not whole;
 * - the time of a rank is from its first kernel's start to its last kernel's end; it is idle while
 *   no stream has one;
 * - of a stream's gap the host is the reason ("host wait") if the kernel was launched after the one
 *   before had ended, else "kernel wait" if it is below 30 us, else "other".
 */
#ifndef TORSH_RANKS_KINETO_BREAKDOWN_H
#define TORSH_RANKS_KINETO_BREAKDOWN_H

#include "tools/ranks/kineto/kineto.h"

#define BREAKDOWN_TYPES 8u /* a bit for each of computation, communication and memory */

enum idle_kind { IDLE_HOST_WAIT, IDLE_KERNEL_WAIT, IDLE_OTHER, N_IDLE_KINDS };

struct breakdown_stream {
	int64_t stream;
	double idle_us[N_IDLE_KINDS]; /* may be negative, where kernels of a stream overlap */
};

struct breakdown_kernel {
	const char *name; /* the breakdown's own */
	enum kernel_type type;
	uint64_t calls;
	double sum_us, squares, min_us, max_us; /* squares: of the deviations from the mean */
};

struct breakdown {
	bool has_kernels;
	bool is_without_last_step;
	bool is_rounded; /* times were, to whole us */
	size_t n_kernels;
	double total_us, idle_us, compute_us, communication_us, overlapped_us;
	double type_us[BREAKDOWN_TYPES]; /* by which types ran at once: 1 << enum kernel_type */
	struct breakdown_stream *streams;
	size_t n_streams, streams_room;
	struct breakdown_kernel *kernels; /* by name, most time first */
	size_t n_names;
};

/*
 * Break a trace's time down. without_last_step: leave out the last step. The trace is not changed.
 */
void torsh_breakdown_make(struct breakdown *breakdown, const struct kineto_trace *trace,
			  bool without_last_step);

/* Free it. */
void torsh_breakdown_free(struct breakdown *breakdown);

/* ---- intervals: what the above is made of ---------------------------------------------------- */

struct interval {
	double start, end;
};

struct intervals {
	struct interval *items;
	size_t n, room;
	double last_end;
};

/* Add an interval, in the order of starts: those that touch become one. */
void torsh_intervals_add(struct intervals *all, double start, double end);

/* Returns the sum of their lengths. */
double torsh_intervals_sum(const struct intervals *all);

/* Returns how much of start to end is in them; *next: where a search begins, 0 at first. */
double torsh_intervals_within(const struct intervals *all, double start, double end, size_t *next);

/*
 * Add up the time by which of n sets of intervals contain it: a bit each. sums has 1 << n items.
 */
void torsh_intervals_overlap(const struct intervals *sets, size_t n, double *sums);

#endif
