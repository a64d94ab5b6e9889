/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Collectives as NCCL reports them itself, or as its functions are called: those of PyTorch's
 * process groups are left out, because c10d_source.h has them. Group is the communicator, which has
 * the same hash on all ranks, and names are those of c10d. A collective begins and ends with the
 * kernels that it launched, or else with their channels, as NCCL's proxy saw them; without these
 * only the call is known.
 */
#ifndef TORSH_RANKS_MAKE_NCCL_SOURCE_H
#define TORSH_RANKS_MAKE_NCCL_SOURCE_H

#include "tools/ranks/make/rank_collective.h"
#include "tools/timeline/collectives/nccl_spans.h"
#include "tools/timeline/device/launch_join.h"

/* A call or a group of calls on a thread, while launches may belong to it. */
struct nccl_open {
	uint64_t number, parent;
	uint32_t thread;
	bool is_group, has_ended; /* a call that waits for its group's end */
	size_t item; /* of the collective, or of the group's last one; SIZE_MAX: none */
};

/* A collective. previous: of the same group; SIZE_MAX: none. */
struct nccl_item {
	struct rank_collective collective;
	uint32_t communicator;
	bool is_exact; /* when NCCL was called is known, and with it the operator around */
	bool has_kernel; /* of its own, not of its group */
	size_t previous;
};

struct nccl_source {
	struct rank_collectives *all; /* gets the collectives at the end */
	struct nccl_spans spans;
	struct hash_map numbers; /* of NCCL's call: index of the item */
	struct hash_map of_c10d; /* numbers of calls within operators of c10d */
	struct hash_map c10d_communicators; /* with such calls */
	struct hash_map c10d_collectives; /* their numbers */
	struct nccl_item *items;
	size_t n_items, items_room;
	struct nccl_open *open;
	size_t n_open, open_room;
};

/* Pass each event; n_operators: that the process called before. */
void torsh_nccl_source_event(struct nccl_source *source, const struct recorded_process *process,
			     const struct timeline_event *event, uint64_t n_operators);

/*
 * Returns a value with its highest bit set for a launch on that thread that NCCL makes; 0: it is
 * another's.
 */
uint64_t torsh_nccl_source_launch(const struct nccl_source *source, uint32_t thread);

/* Returns whether a launch's value is of torsh_nccl_source_launch. */
static inline bool torsh_nccl_source_made(uint64_t launch)
{
	return launch >> 63;
}

/* Pass what such a launch caused, with its value. */
void torsh_nccl_source_kernel(struct nccl_source *source, uint64_t launch,
			      const struct activity_record *kernel);

/*
 * Add the collectives to all. n_c10d: collectives of PyTorch's groups over NCCL that were added;
 * if some of them have no call of NCCL's within, they were called together with others at the end
 * of a group, which older interfaces don't show.
 */
void torsh_nccl_source_finish(struct nccl_source *source, size_t n_c10d);

/* Free the source; the collectives stay. */
void torsh_nccl_source_free(struct nccl_source *source);

#endif
