/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/cpu/cpu_timers.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

#include "shim/libc/cpu_timer.h"
#include "shim/libc/next.h"
#include "shim/perf/perf_sampling.h"
#include "shim/sys.h"

#define THREADS_MAX 8192u
#define NO_TIMER (-1)
#define LOCK_STEP_NS 100000u
#define NEVER_NS (UINT64_C(1) << 60)

struct thread_timer {
	int tid; /* 0: unused */
	int timer; /* NO_TIMER: the kernel gave none, or it has a clock */
	void *clock; /* of perf_sampling.h; NULL: none */
};

/* In pages that are zeroed in a forked child, which has none of these timers. */
struct timers {
	_Atomic uint32_t lock; /* guards the rest; held with all signals blocked */
	bool is_begun;
	int clock_error; /* why the first thread got no clock, -errno */
	struct cpu_periods periods;
	uint32_t n_used; /* places up to the last one in use */
	struct thread_timer threads[THREADS_MAX];
};

char torsh_cpu_timers_mark;
_Thread_local bool torsh_cpu_seems_blocked;

static void *_Atomic timers;

/* A forked child inherits the handler, too. */
static _Atomic int used_signal;

/* That signal is sent by clocks. Also inherited. */
static _Atomic bool has_clocks;

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

/* Whether the kernel lets this thread have such a clock. */
static bool may_have_clocks(struct timers *all)
{
	void *clock;

	if (!all->periods.clock_ns)
		return false;
	/* Its signal never comes: it ends before the first period does. */
	clock = torsh_perf_sampling_start(torsh_sys_gettid(), PERF_SAMPLING_SIGNAL, NEVER_NS,
					  &all->clock_error);
	if (!clock)
		return false;
	torsh_perf_sampling_end(clock);
	return true;
}

/* No SA_ONSTACK: the program's alternate stack may be small. */
static void take_signal(struct timers *all, void *handler, uint64_t blocked)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO | SA_RESTART};
	uint64_t used = given_up | blocked;
	bool is_clock = is_free(PERF_SAMPLING_SIGNAL, used) && may_have_clocks(all);
	int signal = is_clock ? PERF_SAMPLING_SIGNAL : find_free(used);

	atomic_store_explicit(&has_clocks, is_clock, memory_order_relaxed);
	if (signal) {
		action.sa_sigaction = (void (*)(int, siginfo_t *, void *))handler;
		if (torsh_next.sigaction(signal, &action, NULL))
			signal = 0;
	}
	atomic_store_explicit(&used_signal, signal, memory_order_relaxed);
}

static void start(const struct timers *all, struct thread_timer *thread)
{
	int signal = torsh_cpu_timers_signal(), error;

	thread->timer = NO_TIMER;
	thread->clock = NULL;
	if (torsh_cpu_timers_have_clocks())
		thread->clock = torsh_perf_sampling_start(thread->tid, signal,
							  all->periods.clock_ns, &error);
	if (signal && !thread->clock)
		torsh_cpu_timer_start(thread->tid, signal, &torsh_cpu_timers_mark,
				      all->periods.timer_ns, &thread->timer);
}

static void end(struct thread_timer *thread)
{
	if (thread->timer != NO_TIMER)
		torsh_cpu_timer_end(thread->timer);
	if (thread->clock)
		torsh_perf_sampling_end(thread->clock);
	thread->timer = NO_TIMER;
	thread->clock = NULL;
}

bool torsh_cpu_timers_have_clocks(void)
{
	return atomic_load_explicit(&has_clocks, memory_order_relaxed);
}

int torsh_cpu_timers_clock_error(void)
{
	const struct timers *all = atomic_load_explicit(&timers, memory_order_acquire);

	return all ? all->clock_error : 0;
}

int torsh_cpu_timers_signal(void)
{
	return atomic_load_explicit(&used_signal, memory_order_relaxed);
}

int torsh_cpu_timers_begin(void *handler, const struct cpu_periods *periods, bool *is_first)
{
	uint64_t signals;
	struct timers *all = lock(&signals);

	*is_first = all && !all->is_begun;
	if (!all)
		return 0;
	if (!all->is_begun) {
		all->is_begun = true;
		all->periods = *periods;
		if (!torsh_cpu_timers_signal())
			take_signal(all, handler, signals);
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
		if (all->threads[place].timer == NO_TIMER && !all->threads[place].clock) {
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
	take_signal(all, handler, signals);
	torsh_next.sigaction(former, &none, NULL);
	for (uint32_t i = 0; torsh_cpu_timers_signal() && i < all->n_used; i++)
		if (all->threads[i].tid)
			start(all, &all->threads[i]);
	unlock(all, &signals);
	return torsh_cpu_timers_signal();
}
