/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* `torsh report --tree`: the processes of a session as the tree that they were, for people. */
#ifndef TORSH_REPORT_TREE_H
#define TORSH_REPORT_TREE_H

#include <stdio.h>

#include "tools/report/overview.h"

/*
 * A line for each process of the page, and for each program that was not followed: program and
 * first arguments, pid, rank, when it began and how it ended, its peak and what it leaked. A
 * program that another became by exec stands below it, as a child does.
 */
void torsh_tree_print(FILE *out, const struct overview *overview);

#endif
