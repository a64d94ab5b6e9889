/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/cpu/cpu_timers.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

#include "shim/libc/cpu_timer.h"
#include "shim/libc/next.h"
#include "shim/sys.h"

#define THREADS_MAX 8192u
#define NO_TIMER (-1)
#define LOCK_STEP_NS 100000u

struct thread_timer {
	int tid; /* 0: unused */
	int timer; /* NO_TIMER: the kernel gave none */
};

/* In pages that are zeroed in a forked child, which has none of these timers. */
struct timers {
	_Atomic uint32_t lock; /* guards the rest; held with all signals blocked */
	bool is_begun;
	uint64_t period_ns;
	uint32_t n_used; /* places up to the last one in use */
	struct thread_timer threads[THREADS_MAX];
};

char torsh_cpu_timers_mark;
_Thread_local bool torsh_cpu_seems_blocked;

static void *_Atomic timers;

/* A forked child inherits the handler, too. */
static _Atomic int used_signal;

/* A bit for each signal that the program took. */
static uint64_t given_up;

static struct timers *lock(uint64_t *signals)
{
	struct timers *all = torsh_sys_own_once(&timers, sizeof(*all));

	if (!all)
		return NULL;
	torsh_cpu_timer_block(signals);
	/* Acquire pairs with the release in unlock. */
	while (atomic_exchange_explicit(&all->lock, 1, memory_order_acquire))
		torsh_sys_futex_wait(&all->lock, 1, LOCK_STEP_NS);
	return all;
}

static void unlock(struct timers *all, const uint64_t *signals)
{
	atomic_store_explicit(&all->lock, 0, memory_order_release);
	torsh_cpu_timer_unblock(signals);
}

/* used: a bit for each signal that the program took, or has blocked. */
static bool is_free(int signal, uint64_t used)
{
	return !(used >> (signal - 1) & 1) && torsh_cpu_timer_is_free(signal);
}

/* From the highest ones down, which programs use least and the kernel delivers last. */
static int find_free(uint64_t used)
{
	for (int signal = SIGRTMAX - 1; signal >= SIGRTMIN; signal--)
		if (is_free(signal, used))
			return signal;
	return is_free(SIGRTMAX, used) ? SIGRTMAX : 0;
}

/* No SA_ONSTACK: the program's alternate stack may be small. */
static void take_signal(void *handler, uint64_t blocked)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART};
	int signal = find_free(given_up | blocked);

	if (signal) {
		action.sa_sigaction = (void (*)(int, siginfo_t *, void *))handler;
		if (torsh_next.sigaction(signal, &action, NULL))
			signal = 0;
	}
	atomic_store_explicit(&used_signal, signal, memory_order_relaxed);
}

static void start(const struct timers *all, struct thread_timer *thread)
{
	thread->timer = NO_TIMER;
	if (torsh_cpu_timers_signal())
		torsh_cpu_timer_start(thread->tid, torsh_cpu_timers_signal(),
				      &torsh_cpu_timers_mark, all->period_ns, &thread->timer);
}

static void end(struct thread_timer *thread)
{
	if (thread->timer != NO_TIMER)
		torsh_cpu_timer_end(thread->timer);
	thread->timer = NO_TIMER;
}

int torsh_cpu_timers_signal(void)
{
	return atomic_load_explicit(&used_signal, memory_order_relaxed);
}

int torsh_cpu_timers_begin(void *handler, uint64_t period_ns, bool *is_first)
{
	uint64_t signals;
	struct timers *all = lock(&signals);

	*is_first = all && !all->is_begun;
	if (!all)
		return 0;
	if (!all->is_begun) {
		all->is_begun = true;
		all->period_ns = period_ns;
		if (!torsh_cpu_timers_signal())
			take_signal(handler, signals);
	}
	unlock(all, &signals);
	return torsh_cpu_timers_signal();
}

uint32_t torsh_cpu_timers_add(int tid)
{
	uint32_t place = 0;
	uint64_t signals;
	struct timers *all = lock(&signals);

	if (!all)
		return 0;
	while (place < all->n_used && all->threads[place].tid)
		place++;
	if (place < THREADS_MAX) {
		all->threads[place].tid = tid;
		start(all, &all->threads[place]);
		if (place == all->n_used)
			all->n_used++;
		if (all->threads[place].timer == NO_TIMER) {
			all->threads[place].tid = 0;
			place = THREADS_MAX;
		}
	}
	unlock(all, &signals);
	return place < THREADS_MAX ? place + 1 : 0;
}

void torsh_cpu_timers_remove(uint32_t place)
{
	uint64_t signals;
	struct timers *all = lock(&signals);

	if (!all)
		return;
	end(&all->threads[place - 1]);
	all->threads[place - 1].tid = 0;
	unlock(all, &signals);
}

static void end_all(struct timers *all)
{
	struct sigaction action = {.sa_handler = SIG_DFL};

	for (uint32_t i = 0; i < all->n_used; i++)
		if (all->threads[i].tid)
			end(&all->threads[i]);
	torsh_next.sigaction(torsh_cpu_timers_signal(), &action, NULL);
	atomic_store_explicit(&used_signal, 0, memory_order_relaxed);
}

int torsh_cpu_timers_give_way(void *handler)
{
	int former = torsh_cpu_timers_signal();
	struct sigaction ignore = {.sa_handler = SIG_IGN}, none = {.sa_handler = SIG_DFL};
	uint64_t signals;
	struct timers *all = lock(&signals);

	if (!all)
		return 0;
	end_all(all);
	given_up |= UINT64_C(1) << (former - 1);
	/* This drops what is pending. */
	torsh_next.sigaction(former, &ignore, NULL);
	take_signal(handler, signals);
	torsh_next.sigaction(former, &none, NULL);
	for (uint32_t i = 0; torsh_cpu_timers_signal() && i < all->n_used; i++)
		if (all->threads[i].tid)
			start(all, &all->threads[i]);
	unlock(all, &signals);
	return torsh_cpu_timers_signal();
}
