/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Adds up what stacks hold by the line that they are attributed to, where they are too many. */
#ifndef TORSH_WRITER_RESIDENCY_STACK_LINES_H
#define TORSH_WRITER_RESIDENCY_STACK_LINES_H

#include "tools/writer/residency/account.h"

struct program_tables;

/*
 * If more than n_most stacks have bytes, the one with most of each line gets those of all stacks of
 * the line. Call before torsh_account_end.
 */
void torsh_stack_lines_join(struct account *account, const struct program_tables *tables,
			    uint32_t n_most);

#endif
