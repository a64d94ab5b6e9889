/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How much more memory the writer's control group may use. The target is usually in the same group,
 * and the kernel kills a process of the group when its limit is reached. Supports cgroup version 2
 * (memory.max, memory.high) and version 1 (memory.limit_in_bytes), with all visible ancestors. Swap
 * is ignored because swapping slows the target down. Owned by one thread.
 */
#ifndef TORSH_WRITER_BUDGET_MEMORY_LIMIT_H
#define TORSH_WRITER_BUDGET_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/writer/budget/control_groups.h"

#define MEMORY_NO_LIMIT UINT64_MAX

struct memory_limit_group {
	int limit_fds[2], usage_fd, stat_fd; /* -1: the file does not exist */
	bool is_first; /* version 1: use the memory.stat fields that begin with total_ */
};

struct memory_limit {
	/* groups that have a limit or may get one */
	struct memory_limit_group groups[CONTROL_GROUPS_MAX];
	uint32_t n_groups;
};

/*
 * Find the groups of this process; the list is empty if there are none or they cannot be read. root
 * is the folder that contains /proc and the paths in it: "" outside tests.
 */
void torsh_memory_limit_open(struct memory_limit *memory, const char *root);

/* Close the files. */
void torsh_memory_limit_close(struct memory_limit *memory);

/* The least amount of memory left in any of the groups. */
struct memory_left {
	uint64_t bytes; /* MEMORY_NO_LIMIT: no group has a limit */
	uint64_t limit;
	uint64_t needed; /* below this, a process may be killed before the next check */
};

/* Read the remaining memory; makes a few system calls. */
struct memory_left torsh_memory_limit_left(const struct memory_limit *memory);

/*
 * Returns the time until the next read, in which a program that touches memory as fast as it can
 * uses half of what is left; but at least 2 ms.
 */
uint64_t torsh_memory_limit_check_after_ns(const struct memory_left *left);

/*
 * Returns true if less memory is left than needed; then why[] contains the sentence for the report.
 */
bool torsh_memory_limit_is_short(const struct memory_left *left, uint64_t session_ns, char *why,
				 size_t n_why);

#endif
