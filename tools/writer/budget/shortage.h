/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reduces what the writer stores while its memory control group runs short of memory, long before
 * the writer has to end: first new small blocks lose their stacks, then all small blocks do. Owned
 * by the drain thread.
 */
#ifndef TORSH_WRITER_BUDGET_SHORTAGE_H
#define TORSH_WRITER_BUDGET_SHORTAGE_H

#include "tools/writer/budget/memory_limit.h"
#include "tools/writer/input/target.h"

struct shortage {
	bool is_reported; /* on stderr, once per session; each process also gets a note */
};

/* Choose what the processes' heaps store from now on, by the memory that is left in the groups. */
void torsh_shortage_update(struct shortage *shortage, const struct memory_left *left,
			   struct target *const *targets, uint32_t n, uint64_t session_ns);

#endif
