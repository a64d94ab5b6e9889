/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The counters of a thread by the kernel's own perf_event_open, and by filters of system calls that
 * answer in its place: each refusal, and a descriptor of a file whose pages are as a PMU's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "collectors/perf/perf_set.h"

#define HARDWARE ((1u << N_CPU_HARDWARE_COUNTERS) - 1)
#define MIGRATIONS (1u << CPU_COUNTER_MIGRATIONS)
#define PAGES 50u

/* Each test has a process of its own: filters stay, and descriptors are counted. */
static void in_a_child(void (*test)(void))
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		test();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* In such a process: a failed one is seen by its status. */
static void require(bool is_so, int line)
{
	if (is_so)
		return;
	fprintf(stderr, "%s:%d: not so\n", __FILE__, line);
	_exit(1);
}

#define REQUIRE(condition) require(condition, __LINE__)

/* perf_event_open answers this from now on. */
static void refuse(int error)
{
	struct sock_filter ops[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(ops) / sizeof(*ops), ops};

	REQUIRE(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
		!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static int n_open(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void touch_pages(void)
{
	char *pages = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	REQUIRE(pages != MAP_FAILED && !madvise(pages, PAGES * 4096, MADV_NOHUGEPAGE));
	for (unsigned i = 0; i < PAGES; i++)
		((volatile char *)pages)[i * 4096] = 1;
	munmap(pages, PAGES * 4096);
}

/* The kernel's counts between two readings, against what the thread does and getrusage has. */
static void check_software(struct perf_set *set)
{
	struct counter_values none = {0}, before, after;
	struct rusage first, last;

	torsh_perf_set_software(set, &none, &before);
	getrusage(RUSAGE_THREAD, &first);
	touch_pages();
	sched_yield();
	usleep(1000);
	getrusage(RUSAGE_THREAD, &last);
	torsh_perf_set_software(set, &before, &after);
#define SINCE(NAME) (after.counts[CPU_COUNTER_##NAME] - before.counts[CPU_COUNTER_##NAME])
	REQUIRE(SINCE(MINOR_FAULTS) >= (uint64_t)(last.ru_minflt - first.ru_minflt));
	REQUIRE(SINCE(MINOR_FAULTS) >= PAGES && SINCE(MINOR_FAULTS) < PAGES + 30);
	REQUIRE(SINCE(VOLUNTARY) >= (uint64_t)(last.ru_nvcsw - first.ru_nvcsw));
	REQUIRE(SINCE(VOLUNTARY) >= 1);
	REQUIRE(SINCE(TASK_CLOCK) > 0);
#undef SINCE
}

static void check_migrations(struct perf_set *set)
{
	struct counter_values at[8] = {0};
	cpu_set_t allowed, one;
	int cpus[2], n = 0;

	REQUIRE(!sched_getaffinity(0, sizeof(allowed), &allowed));
	for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			cpus[n++] = cpu;
	if (n < 2 || !(set->has & MIGRATIONS))
		return;
	for (int i = 0; i < 7; i++) {
		CPU_ZERO(&one);
		CPU_SET(cpus[i & 1], &one);
		REQUIRE(!sched_setaffinity(0, sizeof(one), &one));
		torsh_perf_set_software(set, &at[i], &at[i + 1]);
	}
	/* From the first processor on: there and back, six times. */
	REQUIRE(at[7].counts[CPU_COUNTER_MIGRATIONS] - at[1].counts[CPU_COUNTER_MIGRATIONS] == 6);
}

static void of_the_kernel(void)
{
	int n_before = n_open();
	struct perf_set set = {0};

	torsh_perf_set_open(&set);
	check_software(&set);
	check_migrations(&set);
	REQUIRE(!(set.has & MIGRATIONS) == (set.migrations_error != 0));
	REQUIRE(!(set.has & HARDWARE) == (set.way == CPU_COUNTERS_NONE));
	if (set.migrations.fd >= 0) {
		REQUIRE(set.migrations.fd >= 512);
		REQUIRE(fcntl(set.migrations.fd, F_GETFD) == FD_CLOEXEC);
	}
	torsh_perf_set_close(&set);
	REQUIRE(n_open() == n_before);
}

static void the_kernels_counts_are_the_threads(void **state)
{
	(void)state;
	in_a_child(of_the_kernel);
}

static int refused_with;

static void of_getrusage_alone(void)
{
	int n_before = n_open();
	struct perf_set set = {0};

	refuse(refused_with);
	torsh_perf_set_open(&set);
	REQUIRE(set.error == -refused_with && set.migrations_error == -refused_with);
	REQUIRE(set.way == CPU_COUNTERS_NONE && !(set.has & (HARDWARE | MIGRATIONS)));
	REQUIRE(set.has == ((1u << N_CPU_COUNTERS) - 1 - HARDWARE - MIGRATIONS));
	check_software(&set);
	REQUIRE(n_open() == n_before);
	torsh_perf_set_close(&set);
}

static void a_refusal_leaves_the_kernels_counts(void **state)
{
	static const int errors[] = {ENOSYS, EPERM, EACCES, ENOENT, EOPNOTSUPP, EMFILE, EBUSY};

	(void)state;
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		refused_with = errors[i];
		in_a_child(of_getrusage_alone);
	}
}

static void with_few_descriptors(void)
{
	struct perf_set set = {0};
	struct rlimit few = {.rlim_cur = 256, .rlim_max = 256};
	int n_before = n_open();

	REQUIRE(!setrlimit(RLIMIT_NOFILE, &few));
	torsh_perf_set_open(&set);
	REQUIRE(set.migrations_error == -EMFILE && set.error == -EMFILE);
	check_software(&set);
	REQUIRE(n_open() == n_before);
	torsh_perf_set_close(&set);
}

static void with_a_quarter_of_the_descriptors(void)
{
	static struct perf_set sets[400];
	struct rlimit limit = {.rlim_cur = 1024, .rlim_max = 1024};
	int n_before = n_open(), n_migrations = 0;

	REQUIRE(!setrlimit(RLIMIT_NOFILE, &limit));
	for (int i = 0; i < 400; i++) {
		torsh_perf_set_open(&sets[i]);
		n_migrations += (sets[i].has & MIGRATIONS) != 0;
	}
	REQUIRE(n_open() - n_before <= 128);
	REQUIRE(sets[0].migrations_error || n_migrations > 100);
	for (int i = 0; i < 400; i++)
		torsh_perf_set_close(&sets[i]);
	REQUIRE(n_open() == n_before);
	/* They are free again. */
	memset(sets, 0, sizeof(sets));
	torsh_perf_set_open(&sets[0]);
	REQUIRE(sets[0].migrations_error || sets[0].has & MIGRATIONS);
	torsh_perf_set_close(&sets[0]);
}

static void the_programs_descriptors_are_left_to_it(void **state)
{
	(void)state;
	in_a_child(with_few_descriptors);
	in_a_child(with_a_quarter_of_the_descriptors);
}

/* The program closes everything, and has files of its own under the numbers. */
static void with_other_files(void)
{
	struct counter_values none = {0}, before, after;
	struct perf_set set = {0};
	int ends[2], fd;
	char byte;

	torsh_perf_set_open(&set);
	fd = set.migrations.fd;
	if (fd < 0)
		return;
	REQUIRE(!pipe(ends) && write(ends[1], "x", 1) == 1);
	REQUIRE(dup2(ends[0], fd) == fd);
	/* A switch, or the counter isn't read. */
	torsh_perf_set_software(&set, &none, &before);
	usleep(1000);
	torsh_perf_set_software(&set, &before, &after);
	REQUIRE(!(set.has & MIGRATIONS));
	torsh_perf_set_close(&set);
	REQUIRE(fcntl(fd, F_GETFD) >= 0);
	REQUIRE(read(fd, &byte, 1) == 1 && byte == 'x');
}

static void files_of_the_program_are_neither_read_nor_closed(void **state)
{
	(void)state;
	in_a_child(with_other_files);
}

static void with_a_fork(void)
{
	int n_before = n_open(), status;
	struct perf_set set = {0};
	pid_t child;

	torsh_perf_set_open(&set);
	child = fork();
	if (!child) {
		torsh_perf_set_forked();
		_exit(n_open() != n_before);
	}
	REQUIRE(waitpid(child, &status, 0) == child && !status);
	REQUIRE(set.migrations.fd < 0 || fcntl(set.migrations.fd, F_GETFD) >= 0);
	torsh_perf_set_close(&set);
	REQUIRE(n_open() == n_before);
}

static void a_child_keeps_none_of_its_parents(void **state)
{
	(void)state;
	in_a_child(with_a_fork);
}

/* ---- a PMU of this test's -------------------------------------------------------------------- */

static struct perf_event_mmap_page *fake[N_CPU_HARDWARE_COUNTERS];

static void count(enum cpu_counter counter, uint64_t n)
{
	fake[counter]->lock++;
	fake[counter]->offset += (int64_t)n;
	fake[counter]->lock++;
}

static void of_pages(void)
{
	struct perf_set set = {.way = CPU_COUNTERS_BY_PAGE, .has = HARDWARE};
	struct counter_values values = {0};

	for (unsigned i = 0; i < N_CPU_HARDWARE_COUNTERS; i++) {
		fake[i] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);
		REQUIRE(fake[i] != MAP_FAILED);
		fake[i]->cap_user_rdpmc = 1;
		set.hardware[i] = (struct perf_counter){.fd = -1, .page = fake[i]};
		count((enum cpu_counter)i, 1000 * (i + 1));
	}
	fake[0]->time_enabled = fake[0]->time_running = 50;
	fake[3]->time_enabled = 50;
	fake[3]->time_running = 20;
	REQUIRE(torsh_perf_set_hardware(&set, &values));
	for (unsigned i = 0; i < N_CPU_HARDWARE_COUNTERS; i++)
		REQUIRE(values.counts[i] == 1000 * (i + 1));
	REQUIRE(values.groups[0].enabled_ns == 50 && values.groups[0].running_ns == 50);
	REQUIRE(values.groups[1].enabled_ns == 50 && values.groups[1].running_ns == 20);
	/* One that this processor lacks. */
	set.hardware[CPU_COUNTER_LLC_MISSES].page = NULL;
	count(CPU_COUNTER_LLC_MISSES, 5);
	count(CPU_COUNTER_DTLB_MISSES, 7);
	REQUIRE(torsh_perf_set_hardware(&set, &values));
	REQUIRE(values.counts[CPU_COUNTER_LLC_MISSES] == 5000);
	REQUIRE(values.counts[CPU_COUNTER_DTLB_MISSES] == 6007);
}

static void hardware_is_read_from_its_pages(void **state)
{
	(void)state;
	in_a_child(of_pages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kernels_counts_are_the_threads),
		cmocka_unit_test(a_refusal_leaves_the_kernels_counts),
		cmocka_unit_test(the_programs_descriptors_are_left_to_it),
		cmocka_unit_test(files_of_the_program_are_neither_read_nor_closed),
		cmocka_unit_test(a_child_keeps_none_of_its_parents),
		cmocka_unit_test(hardware_is_read_from_its_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
