/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/python/gc_events.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/producer/label.h"
#include "agent/producer/producer.h"
#include "shim/cpython/cpython_gc.h"
#include "shim/hooks.h"

#define ATTRIBUTE "python_gc"
#define ATTRIBUTE_VALUE "recorded"

/* Of the run in progress; 0: none. A finalizer in it never starts another one. */
static _Thread_local uint64_t begin_ns;

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool is_on(void)
{
	return atomic_load_explicit(&torsh_agent_state, memory_order_acquire) == AGENT_ON &&
	       torsh_process->pid;
}

/* Once for each process: a forked child's recording needs it too. */
static void announce(struct producer *producer)
{
	static _Atomic int announced;
	struct event event = {.id = EVENT_FACT};
	int mark = torsh_process_mark();

	if (atomic_load_explicit(&announced, memory_order_relaxed) == mark)
		return;
	atomic_store_explicit(&announced, mark, memory_order_relaxed);
	event.fact.name = torsh_label(ATTRIBUTE, strlen(ATTRIBUTE));
	event.fact.value = torsh_label(ATTRIBUTE_VALUE, strlen(ATTRIBUTE_VALUE));
	torsh_producer_event(producer, &event, NULL);
}

/*
 * Inlined, as torsh_producer_enter requires. event: NULL for the announcement alone. A forked child
 * gets its channel on entering.
 */
static inline __attribute__((always_inline)) void send(const struct event *event, const void *frame)
{
	int saved = errno;
	struct producer *producer = torsh_producer_enter();

	if (producer) {
		announce(producer);
		if (event)
			torsh_producer_event(producer, event, frame);
		torsh_producer_leave(producer);
	}
	errno = saved;
}

static void note(const char *sentence)
{
	if (is_on())
		torsh_channel_note(&torsh_process->channel, sentence);
}

static void attached(bool is_attached)
{
	if (is_attached)
		send(NULL, NULL);
	else
		note("python: runs of the garbage collector are not recorded: the interpreter has no "
		     "list of callbacks");
}

static void started(void)
{
	begin_ns = monotonic_ns();
}

static void stopped(const struct cpython_gc_run *run, const void *frame)
{
	uint64_t from_ns = begin_ns, to_ns = monotonic_ns();
	struct event event = {
		.id = EVENT_PYTHON_GC,
		.python_gc = {.begin = from_ns,
			      .duration_ns = to_ns - from_ns,
			      .generation = run->generation,
			      .collected = run->collected,
			      .uncollectable = run->uncollectable},
	};

	begin_ns = 0;
	if (from_ns)
		send(&event, torsh_config.with_stack ? frame : NULL);
}

static void removed(void)
{
	note("python: the program removed the profiler's entry of gc.callbacks: later runs of the "
	     "garbage collector are not recorded");
}

void torsh_gc_watch(void)
{
	static const struct cpython_gc_watcher watcher = {
		.attached = attached, .started = started, .stopped = stopped, .removed = removed};

	if (torsh_config.activities & ACTIVITY_PYTHON)
		torsh_cpython_gc_watch(&watcher);
}
