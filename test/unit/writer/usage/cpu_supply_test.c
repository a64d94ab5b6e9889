/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Throttling and stolen time are found in trees of files like those that a kernel shows. */
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

#include "tools/writer/usage/cpu_supply.h"

#define PID 42
#define MOUNT_V2 "33 27 0:28 / /fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_V1 "35 27 0:30 / /fs/cpu rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct\n"

static char root[64];

/* Make the file root/path, with the folders that it needs. */
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

static void put_v2(const char *folder, unsigned periods, unsigned throttled, unsigned us)
{
	char path[128], text[256];

	snprintf(path, sizeof(path), "%s/cpu.stat", folder);
	snprintf(text, sizeof(text),
		 "usage_usec 9\nuser_usec 5\nsystem_usec 4\nnr_periods %u\nnr_throttled %u\n"
		 "throttled_usec %u\nnr_bursts 0\nburst_usec 0\n",
		 periods, throttled, us);
	put(path, text);
}

static void put_v1(const char *folder, unsigned periods, unsigned throttled, unsigned ns)
{
	char path[128], text[256];

	snprintf(path, sizeof(path), "%s/cpu.stat", folder);
	snprintf(text, sizeof(text), "nr_periods %u\nnr_throttled %u\nthrottled_time %u\n", periods,
		 throttled, ns);
	put(path, text);
}

/* Ticks stolen from two CPUs; the first line is the sum. */
static void put_stolen(unsigned first, unsigned second)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "cpu  10 20 30 40 50 60 70 %u 90 100\ncpu0 1 2 3 4 5 6 7 %u 9 10\n"
		 "cpu1 1 2 3 4 5 6 7 %u 9 10\nintr 99 0 0\nctxt 7\n",
		 first + second, first, second);
	put("proc/stat", text);
}

static cpu_set_t cpus_of(unsigned bits)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	for (size_t i = 0; i < 2; i++) {
		if (bits >> i & 1)
			CPU_SET(i, &cpus);
	}
	return cpus;
}

static void sample(struct cpu_supply *supply, unsigned cpu_bits)
{
	cpu_set_t cpus = cpus_of(cpu_bits);

	torsh_cpu_supply_sample(supply, root, PID, &cpus);
}

static void expect_throttling(const struct cpu_supply *supply, uint64_t periods, uint64_t throttled,
			      uint64_t ns)
{
	assert_true(supply->has_throttling);
	assert_int_equal(supply->throttling.periods, periods);
	assert_int_equal(supply->throttling.throttled, throttled);
	assert_int_equal(supply->throttling.ns, ns);
}

static void put_groups(const char *groups, const char *mounts)
{
	put("proc/42/cgroup", groups);
	put("proc/self/mountinfo", mounts);
}

static int make_root(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/torsh-supply-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void without_files_nothing_is_known(void **state)
{
	struct cpu_supply supply = {.has_stolen = false};

	(void)state;
	sample(&supply, 3);
	torsh_cpu_supply_end(&supply, root);
	assert_false(supply.has_throttling);
	assert_false(supply.has_stolen);
	assert_int_equal(torsh_cpu_supply_quota(&supply), 0);
	torsh_cpu_supply_free(&supply);
}

static void a_group_without_a_quota_counts_no_throttling(void **state)
{
	struct cpu_supply supply = {.has_stolen = false};

	(void)state;
	put_groups("0::/job\n", MOUNT_V2);
	put("fs/cgroup/job/cpu.stat", "usage_usec 9\nuser_usec 5\nsystem_usec 4\n");
	sample(&supply, 3);
	assert_false(supply.has_throttling);
	torsh_cpu_supply_free(&supply);
}

static void throttling_of_version_2_is_counted_from_the_first_sample_on(void **state)
{
	struct cpu_supply supply = {.has_stolen = false};

	(void)state;
	put_groups("0::/job\n", MOUNT_V2);
	put("fs/cgroup/job/cpu.max", "150000 100000\n");
	put_v2("fs/cgroup/job", 100, 50, 7000);
	sample(&supply, 3);
	expect_throttling(&supply, 0, 0, 0);
	assert_int_equal(torsh_cpu_supply_quota(&supply), 2);
	put_v2("fs/cgroup/job", 110, 53, 7900);
	sample(&supply, 3);
	expect_throttling(&supply, 10, 3, 900000);
	put_v2("fs/cgroup/job", 120, 53, 7900);
	torsh_cpu_supply_end(&supply, root);
	expect_throttling(&supply, 20, 3, 900000);
	torsh_cpu_supply_free(&supply);
}

static void throttling_of_version_1_is_in_nanoseconds(void **state)
{
	struct cpu_supply supply = {.has_stolen = false};

	(void)state;
	put_groups("4:memory:/other\n3:cpu,cpuacct:/job\n0::/\n", MOUNT_V2 MOUNT_V1);
	put("fs/cgroup/cpu.stat", "usage_usec 9\n");
	put("fs/cpu/job/cpu.cfs_quota_us", "50000\n");
	put("fs/cpu/job/cpu.cfs_period_us", "100000\n");
	put("fs/cpu/cpu.cfs_quota_us", "-1\n");
	put("fs/cpu/cpu.cfs_period_us", "100000\n");
	put_v1("fs/cpu", 0, 0, 0);
	put_v1("fs/cpu/job", 1, 1, 5);
	sample(&supply, 3);
	assert_int_equal(torsh_cpu_supply_quota(&supply), 1);
	put_v1("fs/cpu/job", 9, 6, 123456);
	sample(&supply, 3);
	expect_throttling(&supply, 8, 5, 123451);
	torsh_cpu_supply_free(&supply);
}

static void of_a_group_and_its_ancestors_the_most_throttled_counts(void **state)
{
	struct cpu_supply supply = {.has_stolen = false};

	(void)state;
	put_groups("0::/job/task\n", MOUNT_V2);
	put_v2("fs/cgroup/job", 0, 0, 0);
	put_v2("fs/cgroup/job/task", 0, 0, 0);
	sample(&supply, 3);
	put_v2("fs/cgroup/job", 20, 10, 500);
	put_v2("fs/cgroup/job/task", 30, 2, 400);
	sample(&supply, 3);
	expect_throttling(&supply, 20, 10, 500000);
	torsh_cpu_supply_free(&supply);
}

static void counts_of_a_group_that_was_left_stay(void **state)
{
	struct cpu_supply supply = {.has_stolen = false};

	(void)state;
	put_groups("0::/a\n", MOUNT_V2);
	put_v2("fs/cgroup/a", 0, 0, 0);
	put_v2("fs/cgroup/b", 1000, 1000, 1000);
	sample(&supply, 3);
	put_v2("fs/cgroup/a", 4, 3, 20);
	put_groups("0::/b\n", MOUNT_V2);
	sample(&supply, 3);
	expect_throttling(&supply, 4, 3, 20000);
	put_v2("fs/cgroup/a", 900, 900, 900);
	put_v2("fs/cgroup/b", 1002, 1001, 1003);
	sample(&supply, 3);
	expect_throttling(&supply, 6, 4, 23000);
	torsh_cpu_supply_free(&supply);
}

static void a_group_that_was_removed_keeps_its_last_counts(void **state)
{
	struct cpu_supply supply = {.has_stolen = false};
	char path[128];

	(void)state;
	put_groups("0::/job\n", MOUNT_V2);
	put_v2("fs/cgroup/job", 0, 0, 0);
	sample(&supply, 3);
	put_v2("fs/cgroup/job", 5, 4, 30);
	sample(&supply, 3);
	snprintf(path, sizeof(path), "%s/fs/cgroup/job/cpu.stat", root);
	assert_int_equal(unlink(path), 0);
	torsh_cpu_supply_end(&supply, root);
	expect_throttling(&supply, 5, 4, 30000);
	torsh_cpu_supply_free(&supply);
}

static void stolen_time_is_the_mean_of_the_cpus_that_it_may_use(void **state)
{
	const uint64_t tick_ns = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
	struct cpu_supply both = {.has_stolen = false}, second = {.has_stolen = false};

	(void)state;
	put_stolen(100, 200);
	sample(&both, 3);
	sample(&second, 2);
	assert_true(both.has_stolen && second.has_stolen);
	assert_int_equal(both.stolen_ns, 0);
	put_stolen(104, 250);
	sample(&both, 3);
	sample(&second, 2);
	assert_int_equal(both.stolen_ns, 27 * tick_ns);
	assert_int_equal(second.stolen_ns, 50 * tick_ns);
	/* It moves to CPU 0: what was stolen there before was not stolen from it. */
	sample(&second, 1);
	put_stolen(105, 290);
	torsh_cpu_supply_end(&second, root);
	assert_int_equal(second.stolen_ns, 51 * tick_ns);
	torsh_cpu_supply_free(&both);
	torsh_cpu_supply_free(&second);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_files_nothing_is_known),
		TEST(a_group_without_a_quota_counts_no_throttling),
		TEST(throttling_of_version_2_is_counted_from_the_first_sample_on),
		TEST(throttling_of_version_1_is_in_nanoseconds),
		TEST(of_a_group_and_its_ancestors_the_most_throttled_counts),
		TEST(counts_of_a_group_that_was_left_stay),
		TEST(a_group_that_was_removed_keeps_its_last_counts),
		TEST(stolen_time_is_the_mean_of_the_cpus_that_it_may_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
