/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* `torsh report --tree`: the processes of a session as a tree, as text. */
#ifndef TORSH_REPORT_TREE_H
#define TORSH_REPORT_TREE_H

#include <stdio.h>

#include "tools/report/overview.h"

/*
 * Print a line for each process of the page, and for each program that was not followed: program
 * and first arguments, pid, rank, when it began and how it ended, its peak and its leaks. A
 * program after an exec is below the program before, as a child is.
 */
void torsh_tree_print(FILE *out, const struct overview *overview);

#endif
