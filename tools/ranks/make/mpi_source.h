/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Collectives of MPI as the program called them. A blocking one is entered by its call and left by
 * its return; of a non-blocking one the end is when the program saw it, in a wait or a test, and
 * what it cost the program is the wait.
 */
#ifndef TORSH_RANKS_MAKE_MPI_SOURCE_H
#define TORSH_RANKS_MAKE_MPI_SOURCE_H

#include "tools/ranks/make/rank_collective.h"
#include "tools/timeline/prepass/process_groups.h"
#include "tools/timeline/spans.h"

struct mpi_source {
	struct rank_collectives *all;
	struct process_groups groups;
	struct hash_map numbers; /* of events: index of the collective */
};

/* Pass all events; n_operators: that the process called before. */
void torsh_mpi_source_event(struct mpi_source *source, const struct recorded_process *process,
			    const struct timeline_event *event, uint64_t n_operators);

/* Free the source; the collectives stay. */
void torsh_mpi_source_free(struct mpi_source *source);

#endif
