/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/perf/thread_counters.h"

#include <errno.h>
#include <string.h>

#include "agent/process/process.h"
#include "agent/producer/counter.h"
#include "collectors/perf/perf_set.h"
#include "shim/libc/cpu_timer.h"

/* Of a thread, in pages of its producer, which the next thread with the producer takes over. */
struct thread_counters {
	struct perf_set set;
	struct counter_values last;
	bool is_open;
	bool is_stale; /* what came since the last time counts nowhere */
};

/* Sends it once in a process: zeroed in a forked child. */
static void *_Atomic announced;

/* Signal handlers and threads without a producer of their own have none. */
static struct thread_counters *counters_of(const struct producer *producer)
{
	struct thread_counters *counters = producer->counters;

	return producer == torsh_producer_self && counters && counters->is_open ? counters : NULL;
}

static void announce(struct producer *producer, const struct perf_set *set)
{
	_Atomic uint32_t *is_announced = torsh_sys_own_once(&announced, sizeof(*is_announced));
	struct event event = {.id = EVENT_CPU_COUNTER_MODE};

	if (!is_announced || atomic_exchange_explicit(is_announced, 1, memory_order_relaxed))
		return;
	event.cpu_counter_mode = (struct event_cpu_counter_mode){
		.has = set->has,
		.hardware = set->way,
		.error = (uint32_t)-set->error,
		.migrations_error = (uint32_t)-set->migrations_error,
		.paranoid = torsh_perf_paranoid(),
	};
	torsh_producer_event(producer, &event, NULL);
}

static void read_all(struct thread_counters *counters, struct counter_values *values)
{
	*values = counters->last;
	if (!torsh_perf_set_hardware(&counters->set, values))
		counters->is_stale = true;
	torsh_perf_set_software(&counters->set, &counters->last, values);
}

static void send_base(struct producer *producer, const struct thread_counters *counters)
{
	const struct event event = {.id = EVENT_CPU_COUNTS,
				    .cpu_counts = {.is_base = 1, .has = counters->set.has}};

	torsh_producer_event(producer, &event, NULL);
}

static void send_software(struct producer *producer, const struct thread_counters *counters,
			  const struct counter_values *now)
{
	const uint64_t *counts = now->counts, *last = counters->last.counts;
#define SINCE(NAME) (counts[CPU_COUNTER_##NAME] - last[CPU_COUNTER_##NAME])
	const struct event event = {
		.id = EVENT_CPU_COUNTS,
		.cpu_counts =
			{
				.has = counters->set.has,
				.task_clock_ns = SINCE(TASK_CLOCK),
				.minor_faults = SINCE(MINOR_FAULTS),
				.major_faults = SINCE(MAJOR_FAULTS),
				.voluntary_switches = SINCE(VOLUNTARY),
				.involuntary_switches = SINCE(INVOLUNTARY),
				.migrations = SINCE(MIGRATIONS),
			},
	};

	torsh_producer_event(producer, &event, NULL);
}

static void send_hardware(struct producer *producer, const struct thread_counters *counters,
			  const struct counter_values *now)
{
	const struct counter_values *before = &counters->last;
	const uint64_t *counts = now->counts, *last = before->counts;
#define TIME_SINCE(group, field) (now->groups[group].field - before->groups[group].field)
	const struct event event = {
		.id = EVENT_CPU_HARDWARE_COUNTS,
		.cpu_hardware_counts =
			{
				.cycles = SINCE(CYCLES),
				.instructions = SINCE(INSTRUCTIONS),
				.branch_misses = SINCE(BRANCH_MISSES),
				.l1d_misses = SINCE(L1D_MISSES),
				.llc_misses = SINCE(LLC_MISSES),
				.dtlb_misses = SINCE(DTLB_MISSES),
				.enabled_0_ns = TIME_SINCE(0, enabled_ns),
				.running_0_ns = TIME_SINCE(0, running_ns),
				.enabled_1_ns = TIME_SINCE(1, enabled_ns),
				.running_1_ns = TIME_SINCE(1, running_ns),
			},
	};
#undef TIME_SINCE
#undef SINCE

	torsh_producer_event(producer, &event, NULL);
}

void torsh_thread_counters_send(struct producer *producer)
{
	struct thread_counters *counters = counters_of(producer);
	struct counter_values now;

	if (!counters)
		return;
	if (torsh_recording_is_paused() || torsh_agent_is_sandboxed()) {
		counters->is_stale = true;
		return;
	}
	read_all(counters, &now);
	if (counters->is_stale) {
		send_base(producer, counters);
	} else {
		send_software(producer, counters, &now);
		if (counters->set.way != CPU_COUNTERS_NONE)
			send_hardware(producer, counters, &now);
	}
	counters->is_stale = false;
	counters->last = now;
}

/* Neither the hook's instructions nor its time count; faults and switches in it are rare. */
void torsh_thread_counters_rebase(struct producer *producer)
{
	struct thread_counters *counters = counters_of(producer);

	if (!counters || counters->is_stale)
		return;
	counters->last.counts[CPU_COUNTER_TASK_CLOCK] = torsh_cpu_timer_now();
	if (!torsh_perf_set_hardware(&counters->set, &counters->last))
		counters->is_stale = true;
}

void torsh_thread_counters_forget(struct producer *producer)
{
	struct thread_counters *counters = counters_of(producer);

	if (counters)
		counters->is_stale = true;
}

/* Inlined, as torsh_producer_enter requires. */
static inline __attribute__((always_inline)) void start(struct producer *producer)
{
	struct thread_counters *counters;

	if (!producer->counters)
		producer->counters = torsh_producer_pages(producer, sizeof(*counters));
	counters = producer->counters;
	if (!counters) {
		torsh_count(COUNTER_cpu_threads_uncounted);
		return;
	}
	*counters = (struct thread_counters){.is_open = true};
	torsh_perf_set_open(&counters->set);
	announce(producer, &counters->set);
	read_all(counters, &counters->last);
	send_base(producer, counters);
}

void torsh_thread_counters_start(void)
{
	int saved = errno;
	struct producer *producer;

	if (!torsh_thread_counters_are_wanted() || torsh_agent_is_sandboxed())
		return;
	producer = torsh_producer_enter();
	if (producer) {
		start(producer);
		torsh_thread_counters_rebase(producer);
		torsh_producer_leave(producer);
	}
	errno = saved;
}

void torsh_thread_counters_finish(bool is_thread_end)
{
	int saved = errno;
	struct thread_counters *counters;
	struct producer *producer;

	if (!torsh_thread_counters_are_wanted() || torsh_agent_is_borrowed())
		return;
	producer = torsh_producer_enter();
	counters = producer ? counters_of(producer) : NULL;
	if (counters) {
		torsh_thread_counters_send(producer);
		torsh_thread_counters_rebase(producer);
	}
	if (counters && is_thread_end && !torsh_agent_is_sandboxed()) {
		torsh_perf_set_close(&counters->set);
		counters->is_open = false;
	}
	if (producer)
		torsh_producer_leave(producer);
	errno = saved;
}
