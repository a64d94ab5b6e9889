/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The folders of a process's control groups, of versions 1 and 2, with all ancestors that are
 * visible to the writer.
 */
#ifndef TORSH_WRITER_BUDGET_CONTROL_GROUPS_H
#define TORSH_WRITER_BUDGET_CONTROL_GROUPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CONTROL_GROUPS_MAX 16u

struct control_group {
	char *folder;
	bool is_first; /* version 1 */
};

struct control_groups {
	/* each version's own group before its ancestors */
	struct control_group groups[CONTROL_GROUPS_MAX];
	uint32_t n;
};

/* Of interest are those that have a file, which depends on the version. */
struct control_group_kind {
	const char *controller; /* its name in version 1 */
	const char *first_file, *second_file;
};

/*
 * Find the groups of a process, 0: the writer itself; the list is empty if there are none or they
 * cannot be read. root is the folder that contains /proc and the paths in it: "" outside tests.
 */
void torsh_control_groups_find(struct control_groups *groups, const char *root, pid_t pid,
			       const struct control_group_kind *kind);

/* Free the list. */
void torsh_control_groups_free(struct control_groups *groups);

/* Open a file of a group; returns -1 if it has none or name is NULL. */
int torsh_control_group_open(const struct control_group *group, const char *name);

#endif
