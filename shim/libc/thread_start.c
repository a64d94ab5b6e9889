/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * pthread_create, so that a thread is followed from its start where its processor time is sampled,
 * and an executor of Python's is known before its first thread works.
 * Otherwise a thread is known from its first event on, and no call is changed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "shim/hooks.h"
#include "shim/libc/next.h"
#include "shim/ranges/task_calls.h"
#include "shim/sys.h"

/* What threads will run that have been created and not yet started. */
#define N_STARTS 256u

struct thread_start {
	void *(*run)(void *);
	void *argument;
	bool is_blocked; /* torsh_cpu_masks_is_blocked */
	_Atomic bool is_taken;
};

static void *_Atomic starts;

/* Any thread; NULL: none is free. */
static struct thread_start *take_start(void *(*run)(void *), void *argument)
{
	struct thread_start *all = torsh_sys_own_once(&starts, N_STARTS * sizeof(*all));

	for (uint32_t i = 0; all && i < N_STARTS; i++) {
		struct thread_start *start = &all[i];

		/* Acquire pairs with the release in give_back. */
		if (atomic_exchange_explicit(&start->is_taken, true, memory_order_acquire))
			continue;
		start->run = run;
		start->argument = argument;
		start->is_blocked = torsh_cpu_masks_is_blocked();
		return start;
	}
	return NULL;
}

static void give_back(struct thread_start *start)
{
	atomic_store_explicit(&start->is_taken, false, memory_order_release);
}

/* Ends with a jump: no frame of it is on the thread's stack. */
static void *start_thread(void *taken)
{
	struct thread_start *start = taken;
	void *(*run)(void *) = start->run;
	void *argument = start->argument;
	bool is_blocked = start->is_blocked;

	give_back(start);
	torsh_cpu_thread_starts(is_blocked);
	return run(argument);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
			  void *argument)
{
	struct thread_start *start;
	int error;

	torsh_tasks_thread_starting();
	if (!torsh_cpu_follows_threads())
		return torsh_next.pthread_create(thread, attributes, run, argument);
	start = take_start(run, argument);
	if (!start)
		return torsh_next.pthread_create(thread, attributes, run, argument);
	error = torsh_next.pthread_create(thread, attributes, start_thread, start);
	if (error)
		give_back(start);
	return error;
}
