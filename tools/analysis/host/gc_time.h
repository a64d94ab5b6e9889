/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The time in CPython's garbage collector: in all, and where it fell. */
#ifndef TORSH_ANALYSIS_HOST_GC_TIME_H
#define TORSH_ANALYSIS_HOST_GC_TIME_H

#include "tools/analysis/time_scope.h"
#include "tools/base/containers/hash_map.h"

#define GC_GENERATIONS 3u

struct gc_sums {
	uint64_t n[GC_GENERATIONS], ns[GC_GENERATIONS]; /* runs, by generation */
	uint64_t collected, uncollectable; /* objects */
	uint64_t longest_ns;
	uint32_t longest_generation;
	uint64_t longest_at_ns;
	uint64_t longest_step; /* its number; only where the scope is of steps */
};

/* Runs that interrupted one line in one operator. */
struct gc_place {
	const char *operator_name; /* the recording's; NULL: none */
	uint32_t stack; /* of the longest run */
	uint64_t ns, longest_ns;
};

struct gc_time {
	/* in the window; and in the whole steps after the first or, without steps, the same */
	struct gc_sums all, steady;
	struct gc_place *places; /* of the steady ones */
	size_t n_places, places_room;
	struct hash_map known_places;
};

/* Add a run, which was inside of that operator (NULL: of none). */
void torsh_gc_time_add(struct gc_time *time, const struct time_scope *scope,
		       const struct recorded_process *process, const struct timeline_event *event,
		       const struct span *innermost);

/* Runs of all generations, and the time that they took. */
uint64_t torsh_gc_runs(const struct gc_sums *sums);
uint64_t torsh_gc_ns(const struct gc_sums *sums);

/* The place with at least half of the steady time; NULL: there is none. */
const struct gc_place *torsh_gc_time_place(const struct gc_time *time);

/* Free the places. */
void torsh_gc_time_free(struct gc_time *time);

#endif
