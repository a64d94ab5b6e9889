/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What samples of a process add up to, against a child that is made to have it: threads that run on
 * one CPU for intervals that the test gives, and statuses with swap that the test writes.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/writer/input/process_info.h"
#include "tools/writer/usage/process_usage.h"

#define N_SPINNING 3u /* with the child's first thread, which spins too */
#define INTERVAL_NS UINT64_C(100000000)

static void *spin(void *unused)
{
	for (volatile unsigned i = 0;; i++)
		;
	return unused;
}

/* On one CPU. ready is closed once all threads run. */
static _Noreturn void run_child(unsigned n_spinning, int ready)
{
	cpu_set_t one;
	int cpu = sched_getcpu();
	pthread_t thread;

	CPU_ZERO(&one);
	CPU_SET((size_t)(cpu < 0 ? 0 : cpu), &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		_exit(1);
	for (unsigned i = 1; i < n_spinning; i++) {
		if (pthread_create(&thread, NULL, spin, NULL))
			_exit(1);
	}
	close(ready);
	spin(NULL);
	_exit(1);
}

static pid_t start_child(unsigned n_spinning)
{
	int ready[2];
	char none;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		run_child(n_spinning, ready[1]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &none, 1), 0);
	close(ready[0]);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void time_with_more_threads_than_cpus_is_that_of_the_samples(void **state)
{
	struct process_usage usage;
	struct process_status status;
	pid_t pid = start_child(N_SPINNING);
	int stat_fd = torsh_process_open_stat(pid), status_fd = torsh_process_open_status(pid);

	(void)state;
	assert_int_equal(torsh_process_read_status(status_fd, &status), 0);
	assert_int_equal(status.n_cpus, 1);
	torsh_process_usage_start(&usage, getpid(), stat_fd);
	for (uint64_t i = 0; i <= 5; i++)
		torsh_process_usage_sample(&usage, pid, stat_fd, &status, 1 + i * INTERVAL_NS, i);
	torsh_process_usage_free(&usage);
	end_child(pid);
	close(stat_fd);
	close(status_fd);
	assert_int_equal(usage.n_cpus, 1);
	assert_int_equal(usage.sampled_ns, 5 * INTERVAL_NS);
	assert_int_equal(usage.oversubscribed_ns, 5 * INTERVAL_NS);
	assert_int_equal(usage.runnable_ns, N_SPINNING * 5 * INTERVAL_NS);
}

static void as_many_threads_as_cpus_are_no_oversubscription(void **state)
{
	struct process_usage usage;
	const unsigned n_cpus = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1;
	struct process_status status = {.n_cpus = n_cpus};
	pid_t pid = start_child(n_cpus);
	int stat_fd = torsh_process_open_stat(pid);

	(void)state;
	torsh_process_usage_start(&usage, getpid(), stat_fd);
	for (uint64_t i = 0; i <= 5; i++)
		torsh_process_usage_sample(&usage, pid, stat_fd, &status, 1 + i * INTERVAL_NS, i);
	torsh_process_usage_free(&usage);
	end_child(pid);
	close(stat_fd);
	assert_int_equal(usage.sampled_ns, 5 * INTERVAL_NS);
	assert_int_equal(usage.oversubscribed_ns, 0);
	assert_int_equal(usage.runnable_ns, 0);
}

/* A status file with so much swap, as the kernel writes it. */
static struct process_status status_with_swap(unsigned kib)
{
	struct process_status status;
	int fd = memfd_create("status", MFD_CLOEXEC);

	assert_true(fd >= 0);
	dprintf(fd,
		"Name:\tpython3\nPid:\t42\nVmPeak:\t  9000 kB\nVmHWM:\t  5000 kB\nVmRSS:\t  4000 kB\n"
		"VmData:\t   100 kB\nVmSwap:\t%8u kB\nThreads:\t1\nCpus_allowed:\t1\n",
		kib);
	assert_int_equal(torsh_process_read_status(fd, &status), 0);
	close(fd);
	return status;
}

static void the_highest_swap_of_all_samples_counts(void **state)
{
	static const unsigned kib[] = {0, 12, 70000, 5};
	struct process_usage usage;
	int stat_fd = torsh_process_open_stat(getpid());

	(void)state;
	torsh_process_usage_start(&usage, getpid(), stat_fd);
	for (unsigned i = 0; i < sizeof(kib) / sizeof(*kib); i++) {
		struct process_status status = status_with_swap(kib[i]);

		assert_int_equal(status.swap_bytes, (uint64_t)kib[i] << 10);
		assert_int_equal(status.rss_bytes, 4000u << 10);
		torsh_process_usage_sample(&usage, getpid(), stat_fd, &status, 1 + i * INTERVAL_NS,
					   i);
	}
	torsh_process_usage_free(&usage);
	close(stat_fd);
	assert_int_equal(usage.swap_peak_bytes, UINT64_C(70000) << 10);
}

/* Their sums are what the kernel has of the process, and there are never more than fit. */
static void points_of_cpu_time_are_the_kernels_and_stay_bounded(void **state)
{
	const struct process_status status = {.n_cpus = 1};
	struct process_usage usage;
	pid_t pid = start_child(2);
	int stat_fd = torsh_process_open_stat(pid);
	struct process_cpu before = torsh_process_cpu(pid), after;
	const struct sum_points *points = &usage.cpu.points;
	const struct sum_point *last;
	uint32_t n_most = 0;

	(void)state;
	torsh_process_usage_start(&usage, pid, stat_fd);
	for (uint64_t i = 0; i < 3 * SUM_POINTS_MAX; i++) {
		torsh_process_usage_sample(&usage, pid, stat_fd, &status, 1 + 2 * i * INTERVAL_NS,
					   1000 + i);
		n_most = points->n > n_most ? points->n : n_most;
	}
	after = torsh_process_cpu(pid);
	end_child(pid);
	close(stat_fd);
	assert_int_equal(n_most, SUM_POINTS_MAX);
	assert_int_equal(points->every, 4);
	for (uint32_t i = 0; i < points->n; i++)
		assert_int_equal(points->items[i].stamp, 1000 + 4 * i);
	last = &points->items[points->n - 1];
	assert_true(last->sums[0] > 0 && last->sums[0] <= after.ran_ns - before.ran_ns);
	assert_true(last->sums[1] <= after.waited_ns - before.waited_ns);
	torsh_process_usage_free(&usage);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_with_more_threads_than_cpus_is_that_of_the_samples),
		cmocka_unit_test(as_many_threads_as_cpus_are_no_oversubscription),
		cmocka_unit_test(the_highest_swap_of_all_samples_counts),
		cmocka_unit_test(points_of_cpu_time_are_the_kernels_and_stay_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
