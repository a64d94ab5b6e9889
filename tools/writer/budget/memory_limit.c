/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/budget/memory_limit.h"

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

static void add_group(struct memory_limit *memory, const struct control_group *of)
{
	const struct version *version = &versions[!of->is_first];
	struct memory_limit_group group = {
		.limit_fds = {torsh_control_group_open(of, version->limits[0]),
			      torsh_control_group_open(of, version->limits[1])},
		.usage_fd = torsh_control_group_open(of, version->usage),
		.stat_fd = torsh_control_group_open(of, "memory.stat"),
		.is_first = of->is_first,
	};

	if (group.limit_fds[0] >= 0 && group.usage_fd >= 0)
		memory->groups[memory->n_groups++] = group;
	else
		close_group(&group);
}

void torsh_memory_limit_open(struct memory_limit *memory, const char *root)
{
	const struct control_group_kind kind = {"memory", versions[0].limits[0],
						versions[1].limits[0]};
	struct control_groups groups;

	*memory = (struct memory_limit){0};
	torsh_control_groups_find(&groups, root, 0, &kind);
	for (uint32_t i = 0; i < groups.n; i++)
		add_group(memory, &groups.groups[i]);
	torsh_control_groups_free(&groups);
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
