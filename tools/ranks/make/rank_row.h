/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The row of a process in a fold. */
#ifndef TORSH_RANKS_MAKE_RANK_ROW_H
#define TORSH_RANKS_MAKE_RANK_ROW_H

#include "fold.pb-c.h"
#include "tools/ranks/make/process_pass.h"

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
