/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A trace of PyTorch's profiler as a rank of a fold, for all that folds tell of ranks. */
#ifndef TORSH_RANKS_KINETO_KINETO_FOLD_H
#define TORSH_RANKS_KINETO_KINETO_FOLD_H

#include "fold.pb-c.h"
#include "tools/ranks/fold/fold.h"
#include "tools/ranks/kineto/kineto.h"

/*
 * Returns the row of a trace, and adds its collectives to the fold's table; the caller frees it
 * with torsh_rank_row_free. Its host is the name of the file: whether two traces have one clock
 * isn't known.
 */
Torsh__FoldRank *torsh_kineto_fold(struct fold *fold, const struct kineto_trace *trace);

#endif
