/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What is left of a memory control group is found in trees of folders like those that a kernel
 * shows.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/writer/budget/memory_limit.h"

#define MIB(n) ((uint64_t)(n) << 20)
#define MOUNT_V2 "33 27 0:28 / /fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_V1 "35 27 0:30 / /fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
#define MOUNTS_OTHER \
	"22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n34 27 0:29 / /fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
#define NO_LIMIT_V1 "9223372036854771712\n"

static char root[64];

/* Makes the file root/path, with the folders that it needs. */
static void put(const char *path, const char *text)
{
	char full[512];
	FILE *file;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *slash = strchr(full + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		assert_true(!mkdir(full, 0700) || errno == EEXIST);
		*slash = '/';
	}
	file = fopen(full, "we");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void put_own(const char *groups, const char *mounts)
{
	put("proc/self/cgroup", groups);
	put("proc/self/mountinfo", mounts);
}

static void put_group(const char *folder, const char *const (*files)[2], size_t n)
{
	char path[256];

	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, files[i][0]);
		put(path, files[i][1]);
	}
}

static void put_v2(const char *folder, const char *most, const char *high, const char *usage)
{
	const char *const files[][2] = {
		{"memory.max", most}, {"memory.high", high}, {"memory.current", usage}};

	put_group(folder, files, 3);
}

static void put_v1(const char *folder, const char *limit, const char *usage)
{
	const char *const files[][2] = {{"memory.limit_in_bytes", limit},
					{"memory.usage_in_bytes", usage}};

	put_group(folder, files, 2);
}

static struct memory_left look(uint32_t n_groups)
{
	struct memory_limit memory;
	struct memory_left left;

	torsh_memory_limit_open(&memory, root);
	assert_int_equal(memory.n_groups, n_groups);
	left = torsh_memory_limit_left(&memory);
	torsh_memory_limit_close(&memory);
	return left;
}

static void expect_left(uint32_t n_groups, uint64_t bytes, uint64_t limit)
{
	struct memory_left left = look(n_groups);

	assert_int_equal(left.bytes, bytes);
	assert_int_equal(left.limit, limit);
}

static int make_root(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/torsh-room-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void without_groups_there_is_no_limit(void **state)
{
	(void)state;
	expect_left(0, MEMORY_NO_LIMIT, MEMORY_NO_LIMIT);
	put_own("0::/a\n", MOUNTS_OTHER);
	expect_left(0, MEMORY_NO_LIMIT, MEMORY_NO_LIMIT);
	put_own("", MOUNT_V2);
	expect_left(0, MEMORY_NO_LIMIT, MEMORY_NO_LIMIT);
}

static void a_limit_of_version_2_is_found(void **state)
{
	(void)state;
	put_own("0::/a/b\n", MOUNTS_OTHER MOUNT_V2);
	put_v2("fs/cgroup/a/b", "419430400\n", "max\n", "104857600\n");
	put_v2("fs/cgroup/a", "max\n", "max\n", "209715200\n");
	put("fs/cgroup/memory.stat", "anon 1\n");
	expect_left(2, MIB(300), MIB(400));
}

static void max_is_no_limit(void **state)
{
	(void)state;
	put_own("0::/a\n", MOUNT_V2);
	put_v2("fs/cgroup/a", "max\n", "max\n", "104857600\n");
	expect_left(1, MEMORY_NO_LIMIT, MEMORY_NO_LIMIT);
	put_v2("fs/cgroup/a", "0\n", "max\n", "104857600\n");
	expect_left(1, 0, 0);
}

static void memory_high_is_a_limit(void **state)
{
	(void)state;
	put_own("0::/a\n", MOUNT_V2);
	put_v2("fs/cgroup/a", "419430400\n", "209715200\n", "52428800\n");
	expect_left(1, MIB(150), MIB(200));
	put_v2("fs/cgroup/a", "max\n", "209715200\n", "314572800\n");
	expect_left(1, 0, MIB(200));
}

static void the_group_with_the_least_left_counts(void **state)
{
	(void)state;
	/* The controller reaches down to a/b only: c has no files of its own. */
	put_own("0::/a/b/c\n", MOUNT_V2);
	put_v2("fs/cgroup/a/b", "1073741824\n", "max\n", "104857600\n");
	put_v2("fs/cgroup/a", "524288000\n", "max\n", "209715200\n");
	expect_left(2, MIB(300), MIB(500));
}

static void pages_of_files_are_not_taken(void **state)
{
	(void)state;
	put_own("0::/a\n", MOUNT_V2);
	put_v2("fs/cgroup/a", "419430400\n", "max\n", "398458880\n");
	put("fs/cgroup/a/memory.stat",
	    "anon 1048576\nfile 999\nshmem 5\ninactive_anon 7\nactive_anon 9\ninactive_file 10485760\nactive_file 20971520\n");
	expect_left(1, MIB(50), MIB(400));
}

static void a_limit_of_version_1_is_found(void **state)
{
	(void)state;
	put_own("5:cpu,cpuacct:/a\n4:memory:/a/b\n1:name=systemd:/x\n", MOUNTS_OTHER MOUNT_V1);
	put_v1("fs/cgroup/memory/a/b", NO_LIMIT_V1, "83886080\n");
	put_v1("fs/cgroup/memory/a", "419430400\n", "398458880\n");
	put_v1("fs/cgroup/memory", NO_LIMIT_V1, "8388608000\n");
	put("fs/cgroup/memory/a/memory.stat",
	    "inactive_file 1\nactive_file 1\nhierarchical_memory_limit 5\ntotal_inactive_file 10485760\ntotal_active_file 20971520\n");
	expect_left(3, MIB(50), MIB(400));
}

static void of_both_versions_that_with_the_controller_counts(void **state)
{
	(void)state;
	put_own("4:memory:/a\n0::/user.slice\n",
		MOUNT_V1 "41 27 0:31 / /fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" MOUNTS_OTHER);
	put_v1("fs/cgroup/memory/a", "419430400\n", "104857600\n");
	put("fs/cgroup/unified/user.slice/cgroup.procs", "1\n");
	expect_left(1, MIB(300), MIB(400));
}

static void in_a_namespace_the_root_is_the_group(void **state)
{
	(void)state;
	put_own("0::/\n", "33 27 0:28 / /mnt/a\\040b\\134c rw - cgroup2 none rw\n");
	put_v2("mnt/a b\\c", "419430400\n", "max\n", "104857600\n");
	expect_left(1, MIB(300), MIB(400));
}

static void a_part_of_the_hierarchy_may_be_mounted(void **state)
{
	(void)state;
	put_own("0::/docker/id/x\n", "33 27 0:28 /docker/id /fs/cgroup rw - cgroup2 cgroup2 rw\n");
	put_v2("fs/cgroup/x", "max\n", "max\n", "104857600\n");
	put_v2("fs/cgroup", "419430400\n", "max\n", "104857600\n");
	expect_left(2, MIB(300), MIB(400));
	put_own("0::/docker/idle/x\n",
		"33 27 0:28 /docker/id /fs/cgroup rw - cgroup2 cgroup2 rw\n");
	expect_left(0, MEMORY_NO_LIMIT, MEMORY_NO_LIMIT);
}

static void of_several_mounts_that_which_shows_most_counts(void **state)
{
	(void)state;
	/* Another group's, a part of the path, one that something hides, and the whole. */
	put_own("0::/a/b\n", "33 27 0:28 /other /fs/other rw - cgroup2 cgroup2 rw\n"
			     "34 27 0:28 /a/b /fs/part rw - cgroup2 cgroup2 rw\n"
			     "35 27 0:28 / /fs/hidden rw - cgroup2 cgroup2 rw\n" MOUNT_V2);
	put_v2("fs/other", "1\n", "max\n", "1\n");
	put_v2("fs/part", "1073741824\n", "max\n", "104857600\n");
	put_v2("fs/cgroup/a/b", "1073741824\n", "max\n", "104857600\n");
	put_v2("fs/cgroup/a", "419430400\n", "max\n", "104857600\n");
	expect_left(2, MIB(300), MIB(400));
}

static void a_mount_from_above_the_namespace_counts(void **state)
{
	(void)state;
	/* The names between its group and this one's are unknown here. */
	put_own("0::/x\n", "33 27 0:28 /../.. /fs/cgroup rw - cgroup2 cgroup2 rw\n");
	put_v2("fs/cgroup", "419430400\n", "max\n", "104857600\n");
	put_v2("fs/cgroup/x", "1\n", "max\n", "1\n");
	expect_left(1, MIB(300), MIB(400));
	put_own("0::/../../x\n", "33 27 0:28 /../.. /fs/cgroup rw - cgroup2 cgroup2 rw\n");
	expect_left(2, 0, 1);
	put_own("0::/x\n", "33 27 0:28 /../sibling /fs/cgroup rw - cgroup2 cgroup2 rw\n");
	expect_left(0, MEMORY_NO_LIMIT, MEMORY_NO_LIMIT);
	put_own("0::/../x\n", "33 27 0:28 / /fs/cgroup rw - cgroup2 cgroup2 rw\n");
	expect_left(0, MEMORY_NO_LIMIT, MEMORY_NO_LIMIT);
}

static void more_groups_than_are_kept_lose_none_of_their_files(void **state)
{
	char path[256] = "fs/cgroup";
	struct memory_limit memory;

	(void)state;
	for (uint32_t i = 0; i < CONTROL_GROUPS_MAX + 4; i++) {
		strcat(path, "/g");
		put_v2(path, "419430400\n", "max\n", "104857600\n");
	}
	put_own("0::/g/g/g/g/g/g/g/g/g/g/g/g/g/g/g/g/g/g/g/g\n", MOUNT_V2);
	torsh_memory_limit_open(&memory, root);
	assert_int_equal(memory.n_groups, CONTROL_GROUPS_MAX);
	for (int i = 0; i < 100; i++) {
		torsh_memory_limit_close(&memory);
		torsh_memory_limit_open(&memory, root);
	}
	torsh_memory_limit_close(&memory);
	/* Nothing stays open. */
	assert_true(dup(0) < 16);
}

static void needed_is_a_part_of_the_limit(void **state)
{
	static const uint64_t mib[][2] = {{64, 32}, {400, 50}, {4096, 128}};
	char text[32], why[512];
	struct memory_left left;

	(void)state;
	put_own("0::/a\n", MOUNT_V2);
	for (size_t i = 0; i < sizeof(mib) / sizeof(mib[0]); i++) {
		snprintf(text, sizeof(text), "%llu\n", (unsigned long long)MIB(mib[i][0]));
		put_v2("fs/cgroup/a", text, "max\n", "0\n");
		left = look(1);
		assert_int_equal(left.needed, MIB(mib[i][1]));
		assert_false(torsh_memory_limit_is_short(&left, 0, why, sizeof(why)));
		left.bytes = left.needed - 1;
		assert_true(torsh_memory_limit_is_short(&left, 0, why, sizeof(why)));
	}
}

static void reads_are_rare_while_much_is_left(void **state)
{
	const struct memory_left none = {.bytes = MEMORY_NO_LIMIT, .limit = MEMORY_NO_LIMIT},
				 much = {.bytes = MIB(100000), .needed = MIB(128)},
				 some = {.bytes = MIB(1128), .needed = MIB(128)},
				 few = {.bytes = MIB(100), .needed = MIB(128)};

	(void)state;
	assert_int_equal(torsh_memory_limit_check_after_ns(&none), 100000000);
	assert_int_equal(torsh_memory_limit_check_after_ns(&much), 100000000);
	assert_int_equal(torsh_memory_limit_check_after_ns(&some), MIB(1000) / 32);
	assert_int_equal(torsh_memory_limit_check_after_ns(&few), 2000000);
}

#define IN_TREE(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_TREE(without_groups_there_is_no_limit),
		IN_TREE(a_limit_of_version_2_is_found),
		IN_TREE(max_is_no_limit),
		IN_TREE(memory_high_is_a_limit),
		IN_TREE(the_group_with_the_least_left_counts),
		IN_TREE(pages_of_files_are_not_taken),
		IN_TREE(a_limit_of_version_1_is_found),
		IN_TREE(of_both_versions_that_with_the_controller_counts),
		IN_TREE(in_a_namespace_the_root_is_the_group),
		IN_TREE(a_part_of_the_hierarchy_may_be_mounted),
		IN_TREE(of_several_mounts_that_which_shows_most_counts),
		IN_TREE(a_mount_from_above_the_namespace_counts),
		IN_TREE(more_groups_than_are_kept_lose_none_of_their_files),
		IN_TREE(needed_is_a_part_of_the_limit),
		cmocka_unit_test(reads_are_rare_while_much_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
