/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * When censuses are taken: as what a process has in its heap and in the interpreter's mappings
 * rises above what it was at the last one, so that the last one is near the peak. Mappings are
 * there before they are filled: another one is made some seconds later, until it finds no more.
 * They take at most a hundredth of the time, and at first some milliseconds more. Each is made on a
 * thread of its own. Owned by the drain thread.
 */
#ifndef TORSH_WRITER_CENSUS_CENSUS_WATCH_H
#define TORSH_WRITER_CENSUS_CENSUS_WATCH_H

#include <pthread.h>

#include "tools/store/free_extents.h"
#include "tools/writer/census/census.h"

struct target;

/* Of one target. */
struct census_watch {
	struct census last; /* valid if is_there */
	bool is_there, is_changed; /* since it was written */
	const char *problem; /* why there is none so far; NULL: there is, or none is due */
	struct extent extent; /* of what was written; owned by rows_census.c */
	uint64_t level_bytes; /* the highest at which one was tried */
	uint64_t found_bytes; /* of objects, by the last one */
	bool is_settled; /* the last one found no more than the one before at the same level */
	uint64_t last_ns; /* when it began; CLOCK_MONOTONIC */
	uint64_t next_ns; /* not looked at before */
	struct census_job *job; /* NULL: none is made now */
};

/* What censuses may take, of all targets. */
struct census_pace {
	uint64_t begin_ns; /* CLOCK_MONOTONIC; 0: nothing was looked at yet */
	uint64_t cpu_ns; /* that they took so far */
	double ns_per_byte; /* of mappings; 0: not known yet */
};

/* now_ns: CLOCK_MONOTONIC; at_ns: the same in session time. Call in each pass. */
void torsh_census_watch(struct target *target, struct census_pace *pace, uint64_t now_ns,
			uint64_t at_ns);

/* End what is being made, and free it; NULL is ignored. */
void torsh_census_watch_destroy(struct census_watch *watch);

#endif
