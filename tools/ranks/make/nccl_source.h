/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Collectives as NCCL reports them itself, of programs without PyTorch's process groups: group is
 * the communicator, which has the same hash on all ranks, and names are those of c10d. A collective
 * begins and ends with the channels of its kernel, as NCCL's proxy saw them; without these only the
 * call is known.
 */
#ifndef TORSH_RANKS_MAKE_NCCL_SOURCE_H
#define TORSH_RANKS_MAKE_NCCL_SOURCE_H

#include "tools/ranks/make/rank_collective.h"
#include "tools/timeline/collectives/nccl_spans.h"

struct nccl_source {
	struct rank_collectives *all;
	struct nccl_spans spans;
	struct hash_map numbers; /* of NCCL's call: index of the collective */
};

/* Pass each event; n_operators: that the process called before. */
void torsh_nccl_source_event(struct nccl_source *source, const struct recorded_process *process,
			     const struct timeline_event *event, uint64_t n_operators);

/* Free the source; the collectives stay. */
void torsh_nccl_source_free(struct nccl_source *source);

#endif
