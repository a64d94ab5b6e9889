/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Operators on an accelerator with events as the only evidence: each has its time, at any depth;
 * those without are counted, and their time is attributed to no other. The accelerator's clock
 * advances by one microsecond with every event.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/process/process.h"
#include "agent/producer/counter.h"
#include "agent/producer/producer.h"
#include "agent/producer/label.h"
#include "collectors/device/devices.h"

static void take_event(struct producer *producer, const struct event *event, const void *frame);

#define torsh_producer_event take_event
#define torsh_producer_enter() ((struct producer *)1)
#define torsh_producer_leave(producer) ((void)(producer))
#define torsh_channel_note(channel, text) ((void)(text))
#define torsh_label(text, n) ((void)(text), (uint32_t)(n))
#define torsh_agent_is_borrowed() 0
#undef DEVICE_ROWS
#define DEVICE_ROWS DEVICE_ROW(counting)
static const struct device_ops torsh_device_counting;
#include "collectors/torch/operator_marks.c"

#define N_EVENTS 65536u

static _Atomic uint64_t counters[N_COUNTERS];
_Atomic uint64_t *torsh_counters = counters;

static uint64_t events[N_EVENTS];
static uint32_t n_events;
static bool is_refusing, is_busy;

static uint32_t n_sent;
static uint64_t whole_ns, own_ns, longest_ns;

static bool is_there(void)
{
	return 1;
}

static int put_event(void *stream, int *device, void **event, int64_t *cpu_ns)
{
	(void)stream;
	if (is_refusing)
		return -EIO;
	assert_true(n_events < N_EVENTS);
	events[n_events] = n_events;
	*event = &events[n_events++];
	if (device)
		*device = 0;
	if (cpu_ns)
		*cpu_ns = 0;
	return 0;
}

static int microseconds(void *from, void *to, double *us)
{
	if (is_busy)
		return -EAGAIN;
	*us = (double)(*(uint64_t *)to - *(uint64_t *)from);
	return 0;
}

static int wait_for_all(void)
{
	is_busy = false;
	return 0;
}

static const struct device_ops torsh_device_counting = {.name = "counting",
							.enabled = is_there,
							.record = put_event,
							.elapsed = microseconds,
							.synchronize = wait_for_all};

static void take_event(struct producer *producer, const struct event *event, const void *frame)
{
	(void)producer;
	(void)frame;
	if (event->id != EVENT_OP_ACCELERATED)
		return;
	n_sent++;
	whole_ns += event->op_accelerated.duration_ns;
	own_ns += event->op_accelerated.own_ns;
	if (event->op_accelerated.duration_ns > longest_ns)
		longest_ns = event->op_accelerated.duration_ns;
}

static int begin(void **unused)
{
	(void)unused;
	n_events = n_sent = 0;
	whole_ns = own_ns = longest_ns = 0;
	is_refusing = is_busy = false;
	atomic_store(&counters[COUNTER_operator_times_lost], 0);
	if (state)
		atomic_store(&state->is_finished, 0);
	return 0;
}

/* n calls, each in the one before. */
static void nest(uint32_t n)
{
	struct operator_marks marks = {0};

	for (uintptr_t key = 1; key <= n; key++)
		torsh_operator_marks_begin(&marks, key);
	for (uintptr_t key = n; key; key--)
		torsh_operator_marks_end(&marks, NULL, key);
	assert_null(marks.innermost);
}

static uint64_t n_lost(void)
{
	return atomic_load(&counters[COUNTER_operator_times_lost]);
}

static void calls_a_thousand_deep_have_their_times(void **unused)
{
	const uint32_t n = 1000;

	(void)unused;
	nest(n);
	torsh_operator_marks_finish();
	assert_int_equal(n_sent, n);
	assert_int_equal(longest_ns, (2 * n - 1) * 1000);
	/* The innermost has one microsecond, all others two more than what they called. */
	assert_int_equal(own_ns, (2 * n - 1) * 1000);
	assert_int_equal(n_lost(), 0);
}

/* What those beyond take would seem to be that of those around them. */
static void marks_beyond_the_limit_are_counted(void **unused)
{
	const uint32_t n = MARKS_MAX + 100;

	(void)unused;
	nest(n);
	torsh_operator_marks_finish();
	assert_int_equal(n_sent, 0);
	assert_int_equal(n_lost(), n);
	/* All room is there again. */
	begin(NULL);
	nest(MARKS_MAX);
	torsh_operator_marks_finish();
	assert_int_equal(n_sent, MARKS_MAX);
	assert_int_equal(n_lost(), 0);
}

static void events_that_the_device_refuses_are_counted(void **unused)
{
	struct operator_marks marks = {0};

	(void)unused;
	torsh_operator_marks_begin(&marks, 1);
	torsh_operator_marks_begin(&marks, 2);
	is_refusing = true;
	torsh_operator_marks_end(&marks, NULL, 2);
	is_refusing = false;
	torsh_operator_marks_end(&marks, NULL, 1);
	nest(1);
	torsh_operator_marks_finish();
	assert_int_equal(n_sent, 1);
	assert_int_equal(n_lost(), 2);
}

/* So far behind that as many as are kept are under way, and nobody may wait. */
static void a_device_that_is_behind_costs_times_that_are_counted(void **unused)
{
	const uint32_t n = 3 * LAG;

	(void)unused;
	is_busy = true;
	for (uint32_t i = 0; i < n; i++)
		nest(1);
	assert_in_range(n_lost(), 1, n - LAG);
	torsh_operator_marks_finish();
	assert_int_equal(n_sent + n_lost(), n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(calls_a_thousand_deep_have_their_times, begin),
		cmocka_unit_test_setup(marks_beyond_the_limit_are_counted, begin),
		cmocka_unit_test_setup(events_that_the_device_refuses_are_counted, begin),
		cmocka_unit_test_setup(a_device_that_is_behind_costs_times_that_are_counted, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
