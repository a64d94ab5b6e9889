/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The row of a process in a fold. */
#ifndef TORSH_RANKS_MAKE_RANK_ROW_H
#define TORSH_RANKS_MAKE_RANK_ROW_H

#include "fold.pb-c.h"
#include "tools/ranks/make/process_pass.h"

/* Returns whether a collective is kept in the row: its block's hash is up to the threshold. */
bool torsh_rank_row_keeps(uint64_t threshold, const char *group, uint64_t sequence);

/* Returns the threshold by which the row of a process with these collectives keeps n_samples. */
uint64_t torsh_rank_row_threshold(const struct rank_collectives *all, size_t n_samples);

/*
 * Returns the row of a process from its pass, and adds its collectives to the fold's table; the
 * caller frees it with torsh_rank_row_free.
 */
Torsh__FoldRank *torsh_rank_row(struct fold *fold, const struct recording *recording,
				const struct recorded_process *process,
				const struct prepass_process *prepass, struct process_pass *pass);

/* Free the row. */
void torsh_rank_row_free(Torsh__FoldRank *row);

#endif
