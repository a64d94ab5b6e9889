/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The threads of a process as lanes: what each is in, segment after segment, without gaps, and for
 * whom it waits as far as that is recorded or can be known.
 */
#ifndef TORSH_ANALYSIS_CRITICAL_LANES_H
#define TORSH_ANALYSIS_CRITICAL_LANES_H

#include "tools/analysis/critical/collect.h"
#include "tools/analysis/critical/graph.h"

enum critical_kind {
#define CRITICAL_KIND(NAME, name, text) CRITICAL_##NAME,
#include "tools/analysis/critical/kinds.def"
#undef CRITICAL_KIND
	N_CRITICAL_KINDS
};

struct segment {
	uint64_t begin_ns, end_ns;
	enum critical_kind kind;
	const char *name; /* of the operator, or of the call that waits for a device */
	uint32_t wait; /* enum thread_wait_kind + 1; 0: it is no recorded wait */
	const struct device_sync *sync; /* NULL: it is none */
	/* It ends when that thread has come to that moment. */
	bool has_waker, is_waker_recorded;
	uint32_t waker; /* thread */
	uint64_t waker_ns;
};

struct lane {
	uint32_t thread;
	uint64_t begin_ns, end_ns;
	bool is_begun; /* the thread was started in the time that is looked at */
	uint64_t woke_ns; /* when it last ended a wait of another one, as far as that is recorded */
	struct segment *segments;
	size_t n, n_room;
	uint64_t *cuts; /* moments at which a node has to end */
	size_t n_cuts, cuts_room;
	uint32_t first_node, n_nodes; /* of the graph: in the order of time */
};

struct lanes {
	const struct collected *collected;
	struct lane *items; /* by thread; without segments: the thread is not in it */
	size_t n;
	uint32_t main; /* the thread that goes from step to step */
	/* of operators, by their ends */
	struct operator_end {
		uint64_t begin_ns, end_ns;
		uint32_t thread;
		bool is_backward;
	} * ends;
	size_t n_ends;
	bool has_wakers; /* who ends waits was recorded */
	uint64_t n_guessed; /* waits whose end is taken from times alone */
};

/* A thread waits for another one no longer than that after what it waited for: a guess. */
#define WAKE_NS_MAX 1000000u
/* A gap that is as long is none of Python alone. */
#define GAP_NS_MIN 1000000u

/* Make the lanes, with their segments. The collected must outlive them. */
void torsh_lanes_make(struct lanes *lanes, const struct collected *collected, uint32_t main);

/* Find out what ends the waits of threads for each other in these steps, and cut lanes there. */
void torsh_lanes_find_wakers(struct lanes *lanes, const struct step *steps, size_t n_steps);

/* A node of the thread has to end at that moment. */
void torsh_lane_cut(struct lanes *lanes, uint32_t thread, uint64_t at_ns);

/* Returns the segment that contains the moment, or NULL. */
struct segment *torsh_lane_at(const struct lane *lane, uint64_t at_ns);

/* Free the lanes. */
void torsh_lanes_free(struct lanes *lanes);

#endif
