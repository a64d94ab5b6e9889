/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Activities of programs with compared system calls: activities WHAT. From the look at MARK on,
 * which is seen from outside, the process does only that, and ends with 0; a forked child, and what
 * an exec makes of it, looks at MARK too when it is ready.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MARK "/activity"
#define NOWHERE "/nonexistent/program"
#define N_TIMES 20
#define N_PAIRS 300000
#define LIBRARY "libresolv.so.2"

static const char *own_path;
static sigjmp_buf before;

static void mark(void)
{
	free(malloc(10));
	access(MARK, F_OK);
}

static void allocate(int n)
{
	for (int i = 0; i < n; i++) {
		void *volatile block = malloc((size_t)(i % 512));

		free(block);
	}
}

static void storm(void)
{
	allocate(N_PAIRS);
}

static void map(void)
{
	for (int i = 0; i < N_TIMES; i++) {
		char *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				0);

		at = mremap(at, 8192, 65536, MREMAP_MAYMOVE);
		madvise(at, 65536, MADV_DONTNEED);
		munmap(at, 65536);
	}
}

static void *run_thread(void *ends_early)
{
	allocate(100);
	if (ends_early)
		pthread_exit(NULL);
	return NULL;
}

static void thread(void)
{
	for (int i = 0; i < N_TIMES; i++) {
		pthread_t one;

		if (pthread_create(&one, NULL, run_thread, i % 2 ? &one : NULL))
			exit(10);
		pthread_join(one, NULL);
	}
}

static void fork_child(void)
{
	for (int i = 0; i < 3; i++) {
		pid_t child = fork();

		if (!child) {
			mark();
			allocate(100);
			_exit(0);
		}
		if (waitpid(child, NULL, 0) != child)
			exit(11);
	}
}

static void load(void)
{
	for (int i = 0; i < 3; i++) {
		void *library = dlopen(LIBRARY, RTLD_NOW);

		if (!library || !dlsym(library, "ns_name_ntop"))
			exit(12);
		allocate(100);
		dlclose(library);
		allocate(100);
	}
}

static void handle(int number)
{
	allocate(number);
}

static void leave(int number)
{
	allocate(number);
	siglongjmp(before, 1);
}

static void signals(void)
{
	signal(SIGUSR1, handle);
	signal(SIGUSR2, leave);
	for (int i = 0; i < N_TIMES; i++) {
		raise(SIGUSR1);
		if (!sigsetjmp(before, 1))
			raise(SIGUSR2);
	}
}

static void execute(void)
{
	execl(own_path, own_path, "nothing", NULL);
	exit(13);
}

static void execute_nothing(void)
{
	execl(NOWHERE, NOWHERE, NULL);
}

static void spawn(void)
{
	char *const arguments[] = {(char *)own_path, (char *)"nothing", NULL};
	pid_t child;

	if (posix_spawn(&child, own_path, NULL, NULL, arguments, environ) ||
	    waitpid(child, NULL, 0) != child)
		exit(14);
}

static void nothing(void)
{
}

static void leave_at_once(void)
{
	_exit(0);
}

static void leave_quickly(void)
{
	quick_exit(0);
}

static void leave_by_exit(void)
{
	exit(0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} activities[] = {
		{"storm", storm},	  {"map", map},
		{"thread", thread},	  {"fork", fork_child},
		{"load", load},		  {"signals", signals},
		{"exec", execute},	  {"exec_fails", execute_nothing},
		{"spawn", spawn},	  {"nothing", nothing},
		{"_exit", leave_at_once}, {"quick_exit", leave_quickly},
		{"exit", leave_by_exit},
	};

	own_path = argv[0];
	for (size_t i = 0; argc == 2 && i < sizeof(activities) / sizeof(activities[0]); i++) {
		if (!strcmp(argv[1], activities[i].name)) {
			mark();
			activities[i].run();
			return 0;
		}
	}
	return 2;
}
