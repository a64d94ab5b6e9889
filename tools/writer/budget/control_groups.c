/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/budget/control_groups.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/memory.h"

int torsh_control_group_open(const struct control_group *group, const char *name)
{
	char path[PATH_MAX];

	if (!name ||
	    snprintf(path, sizeof(path), "%s/%s", group->folder, name) >= (int)sizeof(path))
		return -1;
	return open(path, O_RDONLY | O_CLOEXEC);
}

void torsh_control_groups_free(struct control_groups *groups)
{
	while (groups->n)
		free(groups->groups[--groups->n].folder);
}

static bool has_file(const char *folder, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path) &&
	       access(path, R_OK) == 0;
}

static void add_group(struct control_groups *groups, const char *folder, bool is_first)
{
	size_t n = strlen(folder) + 1;
	char *copy;

	if (groups->n == CONTROL_GROUPS_MAX)
		return;
	copy = torsh_memory_alloc(n);
	memcpy(copy, folder, n);
	groups->groups[groups->n++] = (struct control_group){.folder = copy, .is_first = is_first};
}

/* What is looked for in one hierarchy. */
struct search {
	const char *root; /* with /proc in it */
	const char *controller; /* of version 1 */
	const char *file;
	bool is_first;
};

/* The path of the group's folder below the mount point, then the paths of its ancestors. */
static void add_groups(struct control_groups *groups, const char *mount, const char *path,
		       const struct search *search)
{
	char folder[PATH_MAX];
	size_t n_mount = strlen(mount);
	char *slash;

	if (snprintf(folder, sizeof(folder), "%s%s", mount, path) >= (int)sizeof(folder))
		return;
	for (;;) {
		if (has_file(folder, search->file))
			add_group(groups, folder, search->is_first);
		slash = strrchr(folder, '/');
		if (!slash || (size_t)(slash - folder) < n_mount)
			return;
		*slash = '\0';
	}
}

/* Open a file of a process, 0: this one, below /proc; returns NULL if it does not exist. */
static FILE *open_proc(const char *root, pid_t pid, const char *name)
{
	char path[PATH_MAX], number[16] = "self";

	if (pid)
		snprintf(number, sizeof(number), "%d", (int)pid);
	return snprintf(path, sizeof(path), "%s/proc/%s/%s", root, number, name) < (int)sizeof(path)
		       ? fopen(path, "re")
		       : NULL;
}

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += n) {
		if ((at == list || at[-1] == ',') && (!at[n] || at[n] == ',' || at[n] == '\n'))
			return true;
	}
	return false;
}

/* The kernel escapes spaces, tabs, newlines and backslashes in paths as three octal digits. */
static void unescape(char *path)
{
	char *to = path;

	for (const char *from = path; *from; to++) {
		unsigned byte;

		if (*from == '\\' && sscanf(from + 1, "%3o", &byte) == 1) {
			*to = (char)byte;
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

/*
 * Parse a mountinfo line such as "36 35 98:0 /root /mount/point rw,noatime master:1 - type source
 * options". Returns false if the mount belongs to the other cgroup version.
 */
static bool parse_mount(const char *line, const struct search *search, char *root, char *mount)
{
	const char *rest = strstr(line, " - ");
	char type[32], options[256];

	if (!rest || sscanf(line, "%*s %*s %*s %4095s %4095s", root, mount) != 2 ||
	    sscanf(rest, " - %31s %*s %255s", type, options) != 2)
		return false;
	unescape(root);
	unescape(mount);
	return search->is_first ? !strcmp(type, "cgroup") && has_word(options, search->controller)
				: !strcmp(type, "cgroup2");
}

static bool is_above(const char *path)
{
	return !strncmp(path, "/..", 3) && (path[3] == '/' || !path[3]);
}

/*
 * Returns the part of the group's path below the root of a mount, or NULL if it is not below it.
 * Both paths start with one "/.." per level above the root of this process's cgroup namespace. If
 * the mount's root is above that root, the names of the groups in between are unknown and only the
 * mount's own group is found.
 */
static const char *path_below(const char *root, const char *path)
{
	size_t n;

	for (; is_above(root) && is_above(path); root += 3)
		path += 3;
	if (is_above(root)) {
		while (is_above(root))
			root += 3;
		return *root ? NULL : "";
	}
	n = strcmp(root, "/") ? strlen(root) : 0;
	if (is_above(path) || strncmp(path, root, n) || (path[n] && path[n] != '/'))
		return NULL;
	return strcmp(path + n, "/") ? path + n : "";
}

/* Keep the longer of two lists of the same groups, as seen through two mounts. */
static void keep_more(struct control_groups *best, struct control_groups *found)
{
	struct control_groups less = found->n > best->n ? *best : *found;

	if (found->n > best->n)
		*best = *found;
	torsh_control_groups_free(&less);
}

/*
 * path is the group's path as the kernel reports it. Several mounts may show parts of the
 * hierarchy, and later mounts may hide earlier ones: use the mount that shows the most groups.
 */
static void add_mounted(struct control_groups *groups, const char *path,
			const struct search *search)
{
	char *line = NULL, mount_root[PATH_MAX], mount[PATH_MAX], folder[PATH_MAX];
	struct control_groups best = {.n = 0};
	size_t n_line = 0;
	FILE *mounts = open_proc(search->root, 0, "mountinfo");

	while (mounts && getline(&line, &n_line, mounts) > 0) {
		const char *below = parse_mount(line, search, mount_root, mount)
					    ? path_below(mount_root, path)
					    : NULL;
		struct control_groups found = {.n = 0};

		if (!below || snprintf(folder, sizeof(folder), "%s%s", search->root, mount) >=
				      (int)sizeof(folder))
			continue;
		add_groups(&found, folder, below, search);
		keep_more(&best, &found);
	}
	for (uint32_t i = 0; i < best.n; i++)
		add_group(groups, best.groups[i].folder, best.groups[i].is_first);
	torsh_control_groups_free(&best);
	free(line);
	if (mounts)
		fclose(mounts);
}

void torsh_control_groups_find(struct control_groups *groups, const char *root, pid_t pid,
			       const struct control_group_kind *kind)
{
	const struct search first = {root, kind->controller, kind->first_file, true},
			    second = {root, kind->controller, kind->second_file, false};
	char *line = NULL, controllers[256], path[PATH_MAX];
	size_t n_line = 0;
	FILE *file = open_proc(root, pid, "cgroup");

	*groups = (struct control_groups){.n = 0};
	/* Parse "4:memory:/a/b" (version 1) or "0::/a/b" (version 2). */
	while (file && getline(&line, &n_line, file) > 0) {
		if (sscanf(line, "%*u:%255[^:\n]:%4095[^\n]", controllers, path) == 2 &&
		    has_word(controllers, kind->controller))
			add_mounted(groups, path, &first);
		else if (sscanf(line, "0::%4095[^\n]", path) == 1)
			add_mounted(groups, path, &second);
	}
	free(line);
	if (file)
		fclose(file);
}
