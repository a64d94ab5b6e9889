/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/cpu/cpu_sampler.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/producer/counter.h"
#include "agent/producer/label.h"
#include "agent/producer/producer.h"
#include "agent/stack/cpu/unwind_cpu.h"
#include "collectors/cpu/cpu_timers.h"
#include "shim/hooks.h"
#include "shim/libc/cpu_timer.h"
#include "shim/libc/next.h"
#include "shim/perf/perf_sampling.h"

#define SECOND_NS UINT64_C(1000000000)

/* The period exceeds the tick by this part of it: at equal ones two periods may end in one tick. */
#define TICK_PART 32u

/* Of the calling thread; a forked child's is reset with its producer. */
static _Thread_local struct {
	uint32_t place; /* of its timer, + 1; 0: it isn't sampled */
	uint64_t last_ns; /* of its processor time, at its last sample */
	uint64_t overruns; /* since that */
} self;

static bool are_wanted(void)
{
	return torsh_config.activities & ACTIVITY_SAMPLES;
}

static uint64_t asked_period_ns(void)
{
	return SECOND_NS / torsh_config.cpu_hz;
}

/* Clocks miss what a thread does in the kernel: timers are better where they are fine enough. */
static struct cpu_periods periods(void)
{
	uint64_t tick_ns = torsh_cpu_timer_tick_ns(), least_ns = tick_ns + tick_ns / TICK_PART;
	bool is_coarse = asked_period_ns() < least_ns;

	return (struct cpu_periods){.timer_ns = is_coarse ? least_ns : asked_period_ns(),
				    .clock_ns = is_coarse ? asked_period_ns() : 0};
}

static uint64_t period_ns(void)
{
	const struct cpu_periods both = periods();

	return torsh_cpu_timers_have_clocks() ? both.clock_ns : both.timer_ns;
}

/* Periods in that time that ended in the kernel, or while the signal was blocked. */
static uint64_t missed_by_clock(uint64_t ns)
{
	uint64_t period = asked_period_ns();

	return ns > period ? (ns + period / 2) / period - 1 : 0;
}

/* ---- the handler ---- */

/* Inlined, as torsh_producer_enter requires. */
static inline __attribute__((always_inline)) void
record(struct producer *producer, const ucontext_t *interrupted, bool is_clock)
{
	bool has_stack = torsh_config.with_stack, is_timed = !torsh_agent_is_sandboxed();
	uint64_t now_ns = is_timed ? torsh_cpu_timer_now() : 0, last_ns = self.last_ns;
	struct cpu_caller at = torsh_unwind_interrupted(interrupted);
	struct event event = {.id = EVENT_CPU_SAMPLE};

	is_timed = now_ns > last_ns;
	event.cpu_sample.cpu_ns = is_timed ? now_ns - last_ns : period_ns();
	event.cpu_sample.overruns =
		is_clock ? missed_by_clock(event.cpu_sample.cpu_ns) : self.overruns;
	event.cpu_sample.flags =
		(has_stack ? CPU_SAMPLE_HAS_STACK : 0) | (is_timed ? CPU_SAMPLE_IS_TIMED : 0);
	self.last_ns = is_timed ? now_ns : last_ns + event.cpu_sample.cpu_ns;
	self.overruns = 0;
	if (has_stack)
		torsh_producer_event_interrupted(producer, &event, &at);
	else
		torsh_producer_event(producer, &event, NULL);
}

/*
 * Somebody else sent the signal: the sampler leaves it, and it comes again, to do what it does
 * without a handler, or to stay pending where the thread has blocked it.
 */
static void pass_on(int signal, siginfo_t *info, ucontext_t *interrupted)
{
	const struct sigaction none = {.sa_handler = SIG_DFL};

	if (torsh_cpu_timers_signal() == signal)
		torsh_cpu_sampler_give_way();
	if (torsh_cpu_timers_signal() == signal)
		torsh_next.sigaction(signal, &none, NULL);
	if (torsh_cpu_seems_blocked)
		sigaddset(&interrupted->uc_sigmask, signal);
	TORSH_SYS(SYS_rt_tgsigqueueinfo, torsh_sys_getpid(), torsh_sys_gettid(), signal, info, 0,
		  0);
}

static void take_sample(int signal, siginfo_t *info, void *interrupted)
{
	bool is_clock = torsh_perf_sampling_is_it(info);
	int saved = errno;
	struct producer *producer;

	if (!is_clock &&
	    (info->si_code != SI_TIMER || info->si_value.sival_ptr != &torsh_cpu_timers_mark)) {
		pass_on(signal, info, interrupted);
		errno = saved;
		return;
	}
	if (!self.place)
		return;
	self.overruns += is_clock ? 0 : (uint64_t)info->si_overrun;
	producer = torsh_producer_enter();
	if (producer) {
		record(producer, interrupted, is_clock);
		torsh_producer_leave(producer);
	} else {
		self.overruns++;
	}
	errno = saved;
}

/* ---- beginning and giving way ---- */

static void announce(int signal, const char *reason)
{
	struct event event = {
		.id = EVENT_CPU_SAMPLER,
		.cpu_sampler =
			{
				.source = !signal			   ? CPU_SOURCE_NONE
					  : torsh_cpu_timers_have_clocks() ? CPU_SOURCE_PERF
									   : CPU_SOURCE_TIMER,
				.period_ns = period_ns(),
				.asked_hz = torsh_config.cpu_hz,
				.signal = (uint32_t)signal,
				.reason = reason ? torsh_label(reason, strlen(reason)) : 0,
			},
	};

	torsh_producer_send(&event, NULL);
}

#define NONE_IS_FREE "the program uses all real-time signals"

#define AT_TICKS "the kernel checks timers of processor time at its ticks only"

static void begin(int signal)
{
	bool is_refused = torsh_cpu_timers_clock_error() != 0;

	if (!signal)
		announce(0, NONE_IS_FREE);
	else if (period_ns() > asked_period_ns())
		announce(signal,
			 is_refused ? AT_TICKS ", and perf_event_open is not permitted" : AT_TICKS);
	else
		announce(signal, NULL);
}

void torsh_cpu_sampler_thread_starts(void)
{
	int saved = errno, signal;
	struct cpu_periods both;
	bool is_first;

	if (!are_wanted())
		return;
	self.place = 0;
	self.last_ns = self.overruns = 0;
	if (torsh_agent_is_sandboxed()) {
		torsh_count(COUNTER_cpu_threads_unsampled);
		return;
	}
	both = periods();
	signal = torsh_cpu_timers_begin((void *)take_sample, &both, &is_first);
	if (is_first)
		begin(signal);
	self.last_ns = torsh_cpu_timer_now();
	if (signal) {
		self.place = torsh_cpu_timers_add(torsh_producer_self->tid);
		if (!self.place)
			torsh_count(COUNTER_cpu_threads_unsampled);
	}
	errno = saved;
}

void torsh_cpu_sampler_thread_ends(void)
{
	uint32_t place = self.place;

	self.place = 0;
	if (place && !torsh_agent_is_sandboxed())
		torsh_cpu_timers_remove(place);
}

bool torsh_cpu_follows_threads(void)
{
	return torsh_config.activities & (ACTIVITY_SAMPLES | ACTIVITY_PERF) &&
	       atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON;
}

void torsh_cpu_sampler_give_way(void)
{
	int saved = errno, former = torsh_cpu_timers_signal(), signal;

	if (!former || torsh_agent_is_sandboxed() || torsh_agent_is_borrowed())
		return;
	signal = torsh_cpu_timers_give_way((void *)take_sample);
	if (signal != former)
		begin(signal);
	errno = saved;
}

bool torsh_cpu_signal_asked(int number, const struct sigaction *action, struct sigaction *old)
{
	int signal = torsh_cpu_timers_signal();

	if (!signal || number != signal || torsh_agent_is_sandboxed())
		return false;
	if (!action || action->sa_handler == SIG_DFL) {
		if (old)
			memset(old, 0, sizeof(*old));
		return true;
	}
	torsh_cpu_sampler_give_way();
	return false;
}
