/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Traces of the ranks of a job: of each, read alone, its breakdown and its fold stay. */
#ifndef TORSH_RANKS_KINETO_KINETO_RANKS_H
#define TORSH_RANKS_KINETO_KINETO_RANKS_H

#include "fold.pb-c.h"
#include "tools/ranks/fold/fold.h"
#include "tools/ranks/kineto/breakdown.h"

struct kineto_rank {
	const char *path; /* the caller's */
	bool has_rank;
	uint32_t rank;
	uint64_t n_events, n_steps;
	struct breakdown breakdown;
	Torsh__FoldRank *row;
};

struct kineto_ranks {
	struct kineto_rank *items; /* by rank */
	size_t n;
	struct fold *fold;
};

/*
 * Read traces with up to n_jobs threads; the memory is that of so many traces' kernels. Ends the
 * program if one can't be read, says no rank (a single one is taken for rank 0), or has the rank of
 * another one.
 */
void torsh_kineto_ranks_read(struct kineto_ranks *ranks, char *const *paths, size_t n,
			     size_t n_jobs);

/* Write the fold of all of them. */
void torsh_kineto_ranks_write(struct kineto_ranks *ranks, const char *path);

/* Free them. */
void torsh_kineto_ranks_free(struct kineto_ranks *ranks);

#endif
