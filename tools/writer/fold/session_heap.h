/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The heaps of a session's processes as one sum over time, with its exact peak and what each
 * process's stacks had of it. Processes are folded one by one, each as far as its own rings allow;
 * here their changes wait in logs until no process can add an older one, and are then taken in the
 * order of their stamps.
 *
 * That order is needed only where a new peak can be. The changes of a span of time are taken
 * process by process when the sum of their greatest rises stays below the known peak, which is
 * nearly always so.
 *
 * A session of one process needs none of this, and pays nothing: the sum begins when a process is
 * seen to fork, or a second one sends its hello, with what the first one's heap is then.
 *
 * What a process had goes when it ends: at its last event where that was an exit or an exec, and at
 * the moment when the writer saw its end where it was killed.
 */
#ifndef TORSH_WRITER_FOLD_SESSION_HEAP_H
#define TORSH_WRITER_FOLD_SESSION_HEAP_H

#include <stdbool.h>

#include "tools/writer/fold/peak_tracker.h"

struct heap;

/*
 * Not sites but other entries of a log: the process ended; a step begins, whose name is in n,
 * marked by the program or by an optimizer.
 */
#define SESSION_NO_SITE UINT32_MAX
#define SESSION_STEP (UINT32_MAX - 1)
#define SESSION_STEP_BY_OPTIMIZER (UINT32_MAX - 2)

struct session_change {
	uint64_t stamp;
	int64_t bytes;
	uint32_t site; /* of the process's heap */
	int32_t n; /* blocks */
};

struct session_usage {
	struct site_usage usage;
	uint32_t stack;
};

/* One process. */
struct session_member {
	struct session_member *next;
	struct session_heap *session_heap;
	const struct heap *heap; /* NULL: the process has ended */
	uint32_t process; /* number in the session */
	struct session_change *log; /* in the order of stamps: [first, n) */
	uint32_t first, n, capacity;
	struct session_usage *usages; /* by site */
	uint32_t n_usages, usage_capacity;
	uint32_t step_name; /* as of what was taken */
	bool is_by_optimizer;
	bool has_ended; /* and that was taken */
	/* number + 1 of the peak that it was part of when that was last checked; 0: not checked */
	uint32_t kept_for;
};

struct session_heap {
	struct peak_tracker tracker;
	struct session_member *members; /* that are alive, or were part of the peak */
	uint64_t settled; /* changes with a stamp below this were taken */
	uint64_t n_logged; /* in all logs */
	uint64_t late_changes; /* that came when younger ones had been taken: counted as of then */
	uint32_t n_added; /* processes, ever */
};

/* Free the sum and its members. */
void torsh_session_heap_destroy(struct session_heap *session_heap);

/*
 * A process joins; its heap's changes from now on go to the member's log. The first one joins with
 * all that its heap holds and ever held, others with an empty heap.
 */
struct session_member *torsh_session_heap_add(struct session_heap *session_heap, struct heap *heap,
					      uint32_t process);

/* A change of the member's heap; stamps never go back. */
void torsh_session_heap_note(struct session_member *member, uint64_t stamp, uint32_t site,
			     int64_t n, int64_t bytes);

/* A step of the member's process begins: see torsh_heap_name_step. */
void torsh_session_heap_name_step(struct session_member *member, uint64_t stamp, uint32_t name,
				  bool is_by_optimizer);

/* The member's process ended at that time; its heap is not looked at any more. */
void torsh_session_heap_end(struct session_member *member, uint64_t stamp);

/* Take all changes below the stamp: no process will bring others. UINT64_MAX: all. */
void torsh_session_heap_settle(struct session_heap *session_heap, uint64_t stamp);

/* Bytes of a site at the peak of all that was settled. */
static inline uint64_t torsh_session_heap_peak_bytes(const struct session_heap *session_heap,
						     const struct session_usage *usage)
{
	return torsh_site_usage_peak_bytes(&usage->usage, &session_heap->tracker);
}

/* Its number of blocks then. */
static inline uint64_t torsh_session_heap_peak_n(const struct session_heap *session_heap,
						 const struct session_usage *usage)
{
	return torsh_site_usage_peak_n(&usage->usage, &session_heap->tracker);
}

#endif
