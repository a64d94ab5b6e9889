/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The collectives of one process, whatever reported them. A source adds each once, in the order of
 * their begins, and sets later what it learns later. The same collective has the same key on all
 * ranks: group, sequence within the group, name. No clock is needed to match them.
 *
 * Sources: c10d_source.h (PyTorch's operators, its works, and kernels that they launched),
 * nccl_source.h (NCCL itself, without PyTorch), mpi_source.h (MPI's functions).
 */
#ifndef TORSH_RANKS_MAKE_RANK_COLLECTIVE_H
#define TORSH_RANKS_MAKE_RANK_COLLECTIVE_H

#include "tools/base/containers/hash_map.h"
#include "tools/ranks/fold/fold.h"
#include "tools/timeline/prepass/process_groups.h"

/* Times are the recording's. */
struct rank_collective {
	const char *group, *name; /* of rank_collectives_text */
	const char *backend; /* by what the group communicates, living as long; NULL: unknown */
	uint64_t sequence; /* in its group, from 0 */
	uint64_t bytes; /* what this rank sends or receives, the larger of the two */
	uint32_t group_size; /* 0: unknown */
	uint32_t flags; /* enum fold_sample_flag */
	uint64_t issued_ns; /* the program called it */
	uint64_t entered_ns; /* it began: with FOLD_SAMPLE_ON_DEVICE its kernel did */
	uint64_t end_ns; /* with FOLD_SAMPLE_ENDS; else 0 */
	bool is_message; /* between two ranks, and counted apart: no other rank has its sequence */
	bool has_sequence; /* the source knows it; else it is counted here */
	bool has_wait; /* what it cost the program is the wait for it, which is 0 without one */
	uint64_t wait_begin_ns, waited_ns;
	uint64_t n_operators; /* that the process had called before */
};

struct rank_collectives {
	struct rank_collective *items;
	size_t n, n_room;
	struct hash_map texts, sequences; /* the latter: by group, how many it had */
};

/* Add a collective; without has_sequence its sequence is set. Returns its index. */
size_t torsh_rank_collectives_add(struct rank_collectives *all,
				  const struct rank_collective *collective);

/* Returns the name of a group, with its ranks, that lives as long as the collectives. */
const char *torsh_rank_collectives_group(struct rank_collectives *all,
					 const struct process_group *group);

/* Returns a copy of the text that lives as long as the collectives. */
const char *torsh_rank_collectives_text(struct rank_collectives *all, const char *text, size_t n);

/*
 * Returns whether nobody leaves a collective of that name before all have entered; false for those
 * in which some ranks only send.
 */
bool torsh_collective_joins(const char *name);

/* Free them. */
void torsh_rank_collectives_free(struct rank_collectives *all);

#endif
