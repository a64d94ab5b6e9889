/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Merges files. */
#ifndef TORSH_RANKS_FOLD_FOLD_MERGE_H
#define TORSH_RANKS_FOLD_FOLD_MERGE_H

#include "tools/ranks/fold/fold_file.h"

/*
 * Merge n folds into one: the same bytes for the same folds, in whatever order, and whichever of
 * them were merged before. Memory: the shared tables of the result and of one fold, and 40 bytes
 * for each process. Ends the program with a sentence if a fold is bad, or if a process is in two.
 */
void torsh_fold_merge_files(const char *const *paths, size_t n, const char *output);

#endif
