/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The collectives of a process in its row of a fold: sums of all, and some one by one as columns.
 * Recordings (rank_row.h) and traces of PyTorch's profiler (tools/ranks/kineto) share it.
 */
#ifndef TORSH_RANKS_MAKE_RANK_SAMPLES_H
#define TORSH_RANKS_MAKE_RANK_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include "fold.pb-c.h"
#include "tools/base/containers/hash_map.h"
#include "tools/ranks/fold/fold.h"
#include "tools/ranks/make/rank_collective.h"
#include "tools/ranks/make/rank_cpu.h"

#define RANK_SAMPLES_NO_STEP SIZE_MAX

/* The caller sets row, fold, and last_issued_ns to the process's start. */
struct rank_samples {
	Torsh__FoldRank *row; /* with its phases and shift */
	struct fold *fold;
	struct hash_map texts;
	uint64_t last_sequence, last_issued_ns;
	uint64_t *leads; /* by sample, then by lead */
};

/* Begin the row's samples of these collectives, of which about n_kept are kept one by one. */
void torsh_rank_samples_begin(struct rank_samples *samples, const struct rank_collectives *all,
			      size_t n_kept);

/*
 * Add the next collective, which began in that step (index, or RANK_SAMPLES_NO_STEP) and for
 * exposed_ns was not hidden by computing. leads: N_FOLD_LEADS numbers, or NULL: all 0. cpu: of
 * the same time, or NULL: nothing is known; what is known of one is known of all collectives.
 */
void torsh_rank_samples_add(struct rank_samples *samples, const struct rank_collective *of,
			    size_t step, uint64_t exposed_ns, const uint64_t *leads,
			    const struct rank_cpu *cpu);

/* Complete the row's columns, and free what only making them needs. */
void torsh_rank_samples_end(struct rank_samples *samples);

#endif
