/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* `torsh report --tree`: the processes of a session as the tree that they were, for people. */
#ifndef TORSH_REPORT_TREE_H
#define TORSH_REPORT_TREE_H

#include <stdio.h>

#include "tools/profile/leaks.h"

/*
 * A line for each of the processes: program and first arguments, pid, rank, when it began and how it ended, its peak and
 * what it leaked. leaks has a sum for each, in the same order. A program that another became by exec stands below it, as
 * a child does.
 */
void torsh_tree_print(FILE *out, struct profile_process *const *processes, size_t n, const struct leaks *leaks);

/* The index of the process that processes[i] came from, among those before it; n where it is none of them. */
size_t torsh_tree_parent(struct profile_process *const *processes, size_t n, size_t i);

#endif
