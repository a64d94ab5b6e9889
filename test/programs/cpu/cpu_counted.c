/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What counters of threads are compared with: a program that counts itself.
 *
 *	threads N	N threads, one after the other: each touches pages, waits, and changes its
 *			processor, more than the one before. Prints of each its tid, minor faults,
 *			voluntary switches, moves, processor time in ns.
 *	many N		as many threads that do nothing; then the descriptors of counters
 *	fork		those of a child that was forked while threads wait
 *	few		how many files it can open with a limit of 64 descriptors
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u
#define PAGES 500u
#define WAITERS 3

static sem_t never, started;

static uint64_t thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void touch(unsigned n)
{
	char *pages =
		mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || madvise(pages, n * PAGE, MADV_NOHUGEPAGE))
		abort();
	for (unsigned i = 0; i < n; i++)
		((volatile char *)pages)[i * PAGE] = 1;
	munmap(pages, n * PAGE);
}

static void wait_a_little(unsigned n)
{
	const struct timespec little = {.tv_nsec = 100000};

	for (unsigned i = 0; i < n; i++)
		nanosleep(&little, NULL);
}

/* Returns how often the thread changed its processor. */
static unsigned move(unsigned n)
{
	cpu_set_t allowed, one;
	int cpus[2], n_cpus = 0;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int cpu = 0; cpu < CPU_SETSIZE && n_cpus < 2; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			cpus[n_cpus++] = cpu;
	for (unsigned i = 0; n_cpus == 2 && i <= n; i++) {
		CPU_ZERO(&one);
		CPU_SET(cpus[i & 1], &one);
		sched_setaffinity(0, sizeof(one), &one);
	}
	return n_cpus == 2 ? n : 0;
}

static void *count(void *number)
{
	unsigned n = (unsigned)(uintptr_t)number + 1, n_moves;
	uint64_t begin_ns = thread_ns();
	struct rusage begin, end;

	getrusage(RUSAGE_THREAD, &begin);
	touch(n * PAGES);
	wait_a_little(n * 10);
	n_moves = move(n * 10);
	getrusage(RUSAGE_THREAD, &end);
	printf("%ld %ld %ld %u %" PRIu64 "\n", syscall(SYS_gettid), end.ru_minflt - begin.ru_minflt,
	       end.ru_nvcsw - begin.ru_nvcsw, n_moves, thread_ns() - begin_ns);
	return NULL;
}

static void *do_nothing(void *unused)
{
	return unused;
}

static void *wait_for_ever(void *unused)
{
	sem_post(&started);
	sem_wait(&never);
	return unused;
}

static void run_threads(void *(*run)(void *), unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, run, (void *)(uintptr_t)i))
			abort();
		pthread_join(thread, NULL);
	}
}

/* Of them those that are counters. */
static void print_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int n = 0, n_low = 0;
	struct dirent *entry;

	while ((entry = readdir(folder))) {
		char target[64] = "";
		int fd = atoi(entry->d_name);

		if (readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1) > 0)
			n += strstr(target, "perf_event") != NULL;
		n_low += fd < 512 && entry->d_name[0] != '.';
	}
	closedir(folder);
	printf("%d counters, %d others below 512\n", n, n_low);
	fflush(stdout);
}

static void fork_beside_threads(void)
{
	pthread_t threads[WAITERS];
	int status;
	pid_t child;

	for (int i = 0; i < WAITERS; i++)
		if (pthread_create(&threads[i], NULL, wait_for_ever, NULL))
			abort();
	for (int i = 0; i < WAITERS; i++)
		sem_wait(&started);
	child = fork();
	if (!child) {
		free(malloc(100));
		print_descriptors();
		execl("/proc/self/exe", "cpu_counted", "many", "0", NULL);
		_exit(1);
	}
	waitpid(child, &status, 0);
	printf("status %d\n", status);
}

static void open_all(void)
{
	const struct rlimit few = {.rlim_cur = 64, .rlim_max = 64};
	int n = 0;

	setrlimit(RLIMIT_NOFILE, &few);
	run_threads(do_nothing, 3);
	while (open("/dev/null", O_RDONLY) >= 0)
		n++;
	run_threads(do_nothing, 3);
	printf("%d opened\n", n);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	sem_init(&never, 0, 0);
	sem_init(&started, 0, 0);
	if (!strcmp(what, "threads"))
		run_threads(count, n);
	else if (!strcmp(what, "many"))
		run_threads(do_nothing, n), print_descriptors();
	else if (!strcmp(what, "fork"))
		fork_beside_threads();
	else if (!strcmp(what, "few"))
		open_all();
	else
		return 2;
	return 0;
}
