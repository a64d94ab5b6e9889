/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the writer leaves out while its memory control group gets short of memory, long before it
 * has to end: first new small blocks lose their stacks, then all small blocks do. Owned by the
 * drain thread.
 */
#ifndef TORSH_WRITER_BUDGET_SHORTAGE_H
#define TORSH_WRITER_BUDGET_SHORTAGE_H

#include "tools/writer/budget/memory_limit.h"
#include "tools/writer/input/target.h"

struct shortage {
	bool is_reported; /* on stderr, once a session; each process gets a note */
};

/* Choose, by what is left of the groups' memory, what the processes' heaps keep from now on. */
void torsh_shortage_update(struct shortage *shortage, const struct memory_left *left,
			   struct target *const *targets, uint32_t n, uint64_t session_ns);

#endif
