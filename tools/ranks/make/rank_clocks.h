/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a recording's exchanges of times say of other clocks, for the row of a process. */
#ifndef TORSH_RANKS_MAKE_RANK_CLOCKS_H
#define TORSH_RANKS_MAKE_RANK_CLOCKS_H

#include "fold.pb-c.h"
#include "tools/recording/recording.h"

#define RANK_CLOCKS_MAX 4u /* other clocks of a row: those with most exchanges */
#define RANK_CLOCK_PARTS 32u /* of the process's time; in each the offset is a line */

/* Set the row's clocks, for the time that its start_ns and duration_ns are. */
void torsh_rank_clocks(Torsh__FoldRank *row, const struct recording *recording);

#endif
