/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What programs of cases share: an argument runs the case of that name; without one the names are
 * printed.
 */
#ifndef TEST_REACHABILITY_CASES_H
#define TEST_REACHABILITY_CASES_H

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline))

struct reach_case {
	const char *name;
	void (*run)();
};

/* Old values on the stack keep blocks reachable for any tool. */
[[maybe_unused]] static NOINLINE void clear_stack()
{
	volatile char bytes[16384];

	memset(const_cast<char *>(bytes), 0, sizeof(bytes));
}

/* Of the caller's registers only those that calls preserve are left. */
static NOINLINE void clear_registers()
{
#ifdef __x86_64__
	asm volatile("xorl %%ebx, %%ebx\n\txorl %%r12d, %%r12d\n\txorl %%r13d, %%r13d\n\t"
		     "xorl %%r14d, %%r14d\n\txorl %%r15d, %%r15d"
		     :
		     :
		     : "rbx", "r12", "r13", "r14", "r15");
#endif
}

static std::atomic<int> n_ready; /* threads */

[[maybe_unused]] static pthread_t start(void *(*run)(void *), void *argument = nullptr)
{
	pthread_t thread;

	if (pthread_create(&thread, nullptr, run, argument))
		abort();
	return thread;
}

[[maybe_unused]] static void await(int n)
{
	while (n_ready < n)
		sched_yield();
}

[[noreturn, maybe_unused]] static void stay()
{
	for (;;)
		pause();
}

static inline int run_cases(const reach_case *cases, size_t n, int argc, char **argv)
{
	for (size_t i = 0; i < n; i++) {
		if (argc < 2)
			puts(cases[i].name);
		else if (!strcmp(cases[i].name, argv[1]))
			cases[i].run();
	}
	clear_stack();
	return 0;
}

#endif
