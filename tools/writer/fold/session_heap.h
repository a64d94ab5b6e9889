/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The heaps of a session's processes as one sum over time, with its exact peak and each process's
 * stacks at that peak. Each process is folded on its own, as far as its rings allow. Its changes
 * wait in a log until no process can add an older one, and are then applied in stamp order.
 *
 * That order matters only where a new peak is possible. If the greatest rises of all processes in a
 * span of time cannot bring the sum above the known peak, which is the usual case, the span is
 * applied process by process.
 *
 * A session of one process skips all of this: the sum begins when the process forks or a second
 * process sends its hello, with the current contents of the first one's heap.
 *
 * A process's memory leaves the sum when the process ends: at its last event if that is an exit or
 * an exec, else when the writer sees its end.
 */
#ifndef TORSH_WRITER_FOLD_SESSION_HEAP_H
#define TORSH_WRITER_FOLD_SESSION_HEAP_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/writer/fold/peak_tracker.h"
#include "tools/writer/fold/tables/peak_usages.h"

struct heap;

/*
 * Log entries that are not sites: the process ended; a step begins (its name is in n), marked by
 * the program or by an optimizer.
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

/* One process. */
struct session_member {
	struct session_member *next;
	struct session_heap *session_heap;
	const struct heap *heap; /* NULL: the process has ended */
	uint32_t process; /* number in the session */
	struct session_change *log; /* in stamp order: [first, n) */
	uint32_t first, n;
	size_t capacity;
	struct peak_usages usages; /* by the sites of the process's heap */
	/* of those sites, once the process has ended; n_stacks of them */
	uint32_t *stacks;
	uint32_t n_stacks;
	uint32_t step_name; /* after the last applied change */
	bool is_by_optimizer;
	bool has_ended; /* its end was applied */
	/* number + 1 of the last peak that is known to include it; 0: not checked */
	uint32_t kept_for;
};

struct session_heap {
	struct peak_tracker tracker;
	struct session_member *members; /* live, or part of the peak */
	uint64_t settled; /* changes with a stamp below this were applied */
	uint64_t n_logged; /* in all logs */
	uint64_t late_changes; /* changes older than settled: applied late */
	uint32_t n_added; /* number of processes, ever */
};

/* Free the sum and its members. */
void torsh_session_heap_destroy(struct session_heap *session_heap);

/*
 * Add a process; later changes of its heap go to the member's log. The first member starts with its
 * heap's current and past contents, the others with an empty heap.
 */
struct session_member *torsh_session_heap_add(struct session_heap *session_heap, struct heap *heap,
					      uint32_t process);

/* Log a change of the member's heap; stamps never decrease. */
void torsh_session_heap_note(struct session_member *member, uint64_t stamp, uint32_t site,
			     int64_t n, int64_t bytes);

/* Log the begin of a step; see torsh_heap_name_step. */
void torsh_session_heap_name_step(struct session_member *member, uint64_t stamp, uint32_t name,
				  bool is_by_optimizer);

/* Log the end of the member's process; its heap is not read any more. */
void torsh_session_heap_end(struct session_member *member, uint64_t stamp);

/* Apply all changes below the stamp: no process adds older ones. UINT64_MAX: all. */
void torsh_session_heap_settle(struct session_heap *session_heap, uint64_t stamp);

/* Returns a site's usage: nothing if it holds nothing and held nothing at the peak. */
struct site_usage torsh_session_heap_usage(const struct session_member *member, uint32_t site);

/* Returns the stack of a site that has a usage. */
uint32_t torsh_session_heap_stack(const struct session_member *member, uint32_t site);

/* Returns a site's bytes at the peak of all settled changes. */
static inline uint64_t torsh_session_heap_peak_bytes(const struct session_heap *session_heap,
						     const struct site_usage *usage)
{
	return torsh_site_usage_peak_bytes(usage, &session_heap->tracker);
}

/* Returns a site's number of blocks at that peak. */
static inline uint64_t torsh_session_heap_peak_n(const struct session_heap *session_heap,
						 const struct site_usage *usage)
{
	return torsh_site_usage_peak_n(usage, &session_heap->tracker);
}

#endif
