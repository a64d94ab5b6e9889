/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Makes a fold of a recording: the ranks' processes in it. */
#ifndef TORSH_RANKS_MAKE_FOLD_MAKE_H
#define TORSH_RANKS_MAKE_FOLD_MAKE_H

#include "fold.pb-c.h"
#include "tools/ranks/fold/fold.h"
#include "tools/symbols/symbols.h"

#define FOLD_SAMPLES 512u /* collectives that are kept of a process, about */
#define FOLD_BLOCK_BITS 5 /* so many in sequence are kept or left out together: 32 */
#define FOLD_SITES 200u /* allocation sites of a process by name; the others are one row */
#define FOLD_PATHS 64u /* call paths with most time, in a process's row */

struct folded {
	struct fold *fold;
	Torsh__FoldRank **ranks;
	size_t n_ranks;
	size_t n_samples; /* as FOLD_SAMPLES; 0: that. The caller sets it */
};

/*
 * Fold the processes of ranks among these: of several with one rank the one with most operators,
 * which is the training and none of its helpers. Without any rank, the process with most operators
 * or, without operators, most allocations. torsh_folded_free frees the result. Ends the program if
 * the recording can't be read.
 */
void torsh_fold_make(struct folded *folded, struct recording *recording,
		     struct recorded_process *const *processes, size_t n_processes,
		     struct symbols *symbols);

/* Free the fold and the rows. */
void torsh_folded_free(struct folded *folded);

#endif
