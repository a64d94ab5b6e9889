/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/budget/memory_limit.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/size.h"

/* of the limit: reserve for the target while a ring is full and the writer finishes */
#define NEEDED_PART 8u
#define NEEDED_LEAST (UINT64_C(32) << 20)
#define NEEDED_MOST (UINT64_C(128) << 20)
#define CHECK_LEAST_NS UINT64_C(2000000)
#define CHECK_MOST_NS UINT64_C(100000000)
#define TOUCHED_BYTES_PER_NS 16u /* by all threads of a program together */
/* version 1 reports "no limit" as the largest page count */
#define UNLIMITED (UINT64_C(1) << 60)

struct version {
	const char *limits[2], *usage;
};

static const struct version versions[] = {
	{{"memory.limit_in_bytes", NULL}, "memory.usage_in_bytes"},
	{{"memory.max", "memory.high"}, "memory.current"},
};

static int open_file(const char *folder, const char *name)
{
	char path[PATH_MAX];

	if (!name || snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return -1;
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Read the number in a file; returns MEMORY_NO_LIMIT if there is none. */
static uint64_t read_number(int fd)
{
	char text[32];
	ssize_t n = fd >= 0 ? pread(fd, text, sizeof(text) - 1, 0) : -1;
	uint64_t number;
	char *end;

	if (n <= 0)
		return MEMORY_NO_LIMIT;
	text[n] = '\0';
	number = strtoull(text, &end, 10);
	return end == text || number >= UNLIMITED ? MEMORY_NO_LIMIT : number;
}

static void close_group(const struct memory_limit_group *group)
{
	const int fds[] = {group->limit_fds[0], group->limit_fds[1], group->usage_fd,
			   group->stat_fd};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
}

static void add_opened(struct memory_limit *memory, const struct memory_limit_group *group)
{
	if (memory->n_groups < MEMORY_LIMIT_GROUPS_MAX)
		memory->groups[memory->n_groups++] = *group;
	else
		close_group(group);
}

static void add_group(struct memory_limit *memory, const char *folder,
		      const struct version *version)
{
	struct memory_limit_group group = {
		.limit_fds = {open_file(folder, version->limits[0]),
			      open_file(folder, version->limits[1])},
		.usage_fd = open_file(folder, version->usage),
		.stat_fd = open_file(folder, "memory.stat"),
		.is_first = version == versions,
	};

	if (group.limit_fds[0] >= 0 && group.usage_fd >= 0)
		add_opened(memory, &group);
	else
		close_group(&group);
}

/* The path of the group's folder below the mount point, then the paths of its ancestors. */
static void add_groups(struct memory_limit *memory, const char *mount, const char *path,
		       const struct version *version)
{
	char folder[PATH_MAX];
	size_t n_mount = strlen(mount);
	char *slash;

	if (snprintf(folder, sizeof(folder), "%s%s", mount, path) >= (int)sizeof(folder))
		return;
	for (;;) {
		add_group(memory, folder, version);
		slash = strrchr(folder, '/');
		if (!slash || (size_t)(slash - folder) < n_mount)
			return;
		*slash = '\0';
	}
}

/* Open a file of this process below /proc; returns NULL if it does not exist. */
static FILE *open_own(const char *root, const char *name)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/proc/self/%s", root, name) < (int)sizeof(path)
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
static bool parse_mount(const char *line, bool is_first, char *root, char *mount)
{
	const char *rest = strstr(line, " - ");
	char type[32], options[256];

	if (!rest || sscanf(line, "%*s %*s %*s %4095s %4095s", root, mount) != 2 ||
	    sscanf(rest, " - %31s %*s %255s", type, options) != 2)
		return false;
	unescape(root);
	unescape(mount);
	return is_first ? !strcmp(type, "cgroup") && has_word(options, "memory")
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
static void keep_more(struct memory_limit *best, struct memory_limit *found)
{
	struct memory_limit less = found->n_groups > best->n_groups ? *best : *found;

	if (found->n_groups > best->n_groups)
		*best = *found;
	torsh_memory_limit_close(&less);
}

/*
 * path is the group's path as the kernel reports it. Several mounts may show parts of the
 * hierarchy, and later mounts may hide earlier ones: use the mount that shows the most groups.
 */
static void add_mounted(struct memory_limit *memory, const char *root, const char *path,
			bool is_first)
{
	char *line = NULL, mount_root[PATH_MAX], mount[PATH_MAX], folder[PATH_MAX];
	struct memory_limit best = {0};
	size_t n_line = 0;
	FILE *mounts = open_own(root, "mountinfo");

	while (mounts && getline(&line, &n_line, mounts) > 0) {
		const char *below = parse_mount(line, is_first, mount_root, mount)
					    ? path_below(mount_root, path)
					    : NULL;
		struct memory_limit found = {0};

		if (!below ||
		    snprintf(folder, sizeof(folder), "%s%s", root, mount) >= (int)sizeof(folder))
			continue;
		add_groups(&found, folder, below, &versions[!is_first]);
		keep_more(&best, &found);
	}
	for (uint32_t i = 0; i < best.n_groups; i++)
		add_opened(memory, &best.groups[i]);
	free(line);
	if (mounts)
		fclose(mounts);
}

void torsh_memory_limit_open(struct memory_limit *memory, const char *root)
{
	char *line = NULL, controllers[256], path[PATH_MAX];
	size_t n_line = 0;
	FILE *groups = open_own(root, "cgroup");

	*memory = (struct memory_limit){0};
	/* Parse "4:memory:/a/b" (version 1) or "0::/a/b" (version 2). */
	while (groups && getline(&line, &n_line, groups) > 0) {
		if (sscanf(line, "%*u:%255[^:\n]:%4095[^\n]", controllers, path) == 2 &&
		    has_word(controllers, "memory"))
			add_mounted(memory, root, path, true);
		else if (sscanf(line, "0::%4095[^\n]", path) == 1)
			add_mounted(memory, root, path, false);
	}
	free(line);
	if (groups)
		fclose(groups);
}

void torsh_memory_limit_close(struct memory_limit *memory)
{
	while (memory->n_groups)
		close_group(&memory->groups[--memory->n_groups]);
}

/* Page cache, which the kernel reclaims before it kills a process. */
static uint64_t file_bytes(const struct memory_limit_group *group)
{
	static const char *const names[][2] = {{"\ninactive_file ", "\ntotal_inactive_file "},
					       {"\nactive_file ", "\ntotal_active_file "}};
	char text[8192] = "\n";
	ssize_t n = group->stat_fd >= 0 ? pread(group->stat_fd, text + 1, sizeof(text) - 2, 0) : -1;
	uint64_t sum = 0;

	if (n <= 0)
		return 0;
	text[n + 1] = '\0';
	for (size_t i = 0; i < 2; i++) {
		const char *name = names[i][group->is_first], *found = strstr(text, name);

		sum += found ? strtoull(found + strlen(name), NULL, 10) : 0;
	}
	return sum;
}

static uint64_t left_in(const struct memory_limit_group *group, uint64_t *limit)
{
	uint64_t most = read_number(group->limit_fds[0]), high = read_number(group->limit_fds[1]);
	uint64_t usage = read_number(group->usage_fd), left;

	*limit = high < most ? high : most;
	if (*limit == MEMORY_NO_LIMIT || usage == MEMORY_NO_LIMIT)
		return MEMORY_NO_LIMIT;
	left = usage < *limit ? *limit - usage : 0;
	/* Reading memory.stat is slower, so it is read only when it can change the result. */
	return left < *limit / 2 ? left + file_bytes(group) : left;
}

static uint64_t needed_of(uint64_t limit)
{
	uint64_t needed = limit / NEEDED_PART;

	return needed < NEEDED_LEAST ? NEEDED_LEAST : needed > NEEDED_MOST ? NEEDED_MOST : needed;
}

struct memory_left torsh_memory_limit_left(const struct memory_limit *memory)
{
	struct memory_left least = {.bytes = MEMORY_NO_LIMIT, .limit = MEMORY_NO_LIMIT};

	for (uint32_t i = 0; i < memory->n_groups; i++) {
		uint64_t limit, left = left_in(&memory->groups[i], &limit);

		if (left < least.bytes)
			least = (struct memory_left){
				.bytes = left, .limit = limit, .needed = needed_of(limit)};
	}
	return least;
}

uint64_t torsh_memory_limit_check_after_ns(const struct memory_left *left)
{
	uint64_t spare = left->bytes > left->needed ? left->bytes - left->needed : 0;
	uint64_t ns = spare / TOUCHED_BYTES_PER_NS / 2;

	return ns < CHECK_LEAST_NS ? CHECK_LEAST_NS : ns > CHECK_MOST_NS ? CHECK_MOST_NS : ns;
}

bool torsh_memory_limit_is_short(const struct memory_left *left, uint64_t session_ns, char *why,
				 size_t n_why)
{
	char at[SIZE_TEXT_BYTES], has[SIZE_TEXT_BYTES], most[SIZE_TEXT_BYTES];

	if (left->bytes == MEMORY_NO_LIMIT || left->bytes >= left->needed)
		return false;
	snprintf(
		why, n_why,
		"the writer ended %s after the start, as its memory control group had %s left of %s, and nothing is known of "
		"what came later",
		torsh_size_duration(session_ns, at), torsh_size_human(left->bytes, has),
		torsh_size_human(left->limit, most));
	return true;
}
