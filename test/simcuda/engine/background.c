/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The engine's thread: calls host functions, and advances time while something is pending with an
 * effect that the program could see without a call. Started by the first of these; none of it runs
 * in a forked child.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "test/simcuda/engine/clock.h"
#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/queue.h"

enum {
	/* Below this a sleep would last longer than what is waited for. */
	SPIN_NS = 60000
};

pthread_mutex_t sim_the_lock = PTHREAD_MUTEX_INITIALIZER;

static pthread_cond_t changed; /* something ended, or is needed */
static struct sim_op *first_call, *last_call;
static int n_needed;

static void make_condition(void)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

static pthread_cond_t *condition(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_condition);
	return &changed;
}

void sim_wake(void)
{
	pthread_cond_broadcast(condition());
}

void sim_wait_until(uint64_t t_ns)
{
	uint64_t now = sim_now();

	if (t_ns == UINT64_MAX) {
		pthread_cond_wait(condition(), &sim_the_lock);
	} else if (t_ns > now + SPIN_NS) {
		struct timespec at = {(time_t)(t_ns / 1000000000), (long)(t_ns % 1000000000)};

		pthread_cond_timedwait(condition(), &sim_the_lock, &at);
	} else if (t_ns > now) {
		sim_unlock();
		while (sim_now() < t_ns)
			sched_yield();
		sim_lock();
	}
}

static void call_host(void)
{
	struct sim_op *op = first_call;

	first_call = op->next;
	if (!first_call)
		last_call = NULL;
	sim_unlock();
	op->work.host.call(op->work.host.data);
	sim_lock();
	sim_op_finish_host(op);
}

static void *run(void *unused)
{
	(void)unused;
	sim_lock();
	for (;;) {
		sim_run();
		if (first_call) {
			call_host();
			continue;
		}
		uint64_t next = n_needed ? sim_next_time() : UINT64_MAX;
		if (next != UINT64_MAX)
			sim_clock_reach(next);
		if (next > sim_now())
			sim_wait_until(next);
	}
	return NULL;
}

static void start_thread(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;

	/* The program's signals are for its own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attributes, run, NULL))
		abort();
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void sim_background_need(int n)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start_thread);
	n_needed += n;
	if (n > 0)
		sim_wake();
}

void sim_background_call(struct sim_op *op)
{
	op->next = NULL;
	if (last_call)
		last_call->next = op;
	else
		first_call = op;
	last_call = op;
	sim_wake();
}
