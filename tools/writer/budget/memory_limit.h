/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How much more memory the writer's control group may take, which is mostly that of the target too:
 * the kernel kills a process of the group where none is left. Of version 2 (memory.max,
 * memory.high) and version 1 (memory.limit_in_bytes), with all groups around it that can be seen.
 * Swap doesn't count: memory that goes there slows the target down. Owned by one thread.
 */
#ifndef TORSH_WRITER_BUDGET_MEMORY_LIMIT_H
#define TORSH_WRITER_BUDGET_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_LIMIT_GROUPS_MAX 16u
#define MEMORY_NO_LIMIT UINT64_MAX

struct memory_limit_group {
	int limit_fds[2], usage_fd, stat_fd; /* -1: there is no such file */
	bool is_first; /* version 1: of the memory.stat fields, those that begin with total_ */
};

struct memory_limit {
	/* that have a limit or may get one */
	struct memory_limit_group groups[MEMORY_LIMIT_GROUPS_MAX];
	uint32_t n_groups;
};

/*
 * Find the groups of this process; none where there are none, or nothing can be read of them. root:
 * the folder in which /proc and what it names are opened, "" but for tests.
 */
void torsh_memory_limit_open(struct memory_limit *memory, const char *root);

/* Close the files. */
void torsh_memory_limit_close(struct memory_limit *memory);

/* What is left in the group that has the least. */
struct memory_left {
	uint64_t bytes; /* MEMORY_NO_LIMIT: no group has a limit */
	uint64_t limit;
	uint64_t needed; /* with less than that a process may be killed before the next check */
};

/* Read what is left; some system calls. */
struct memory_left torsh_memory_limit_left(const struct memory_limit *memory);

/* Is less left than is needed? Then why[] becomes the sentence for the report. */
bool torsh_memory_limit_is_short(const struct memory_left *left, uint64_t session_ns, char *why,
				 size_t n_why);

#endif
