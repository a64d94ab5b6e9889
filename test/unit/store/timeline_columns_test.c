/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Events of the timeline come out of their columns as they went in; bytes that are no columns are
 * refused.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "test/unit/fixtures/same_event.h"
#include "tools/store/timeline_columns.h"

#define N_EVENTS 20000u

struct message {
	uint32_t n_events;
	uint8_t *bytes;
	size_t n_bytes;
};

static const uint32_t ids[] = {
#define EVENT(id, NAME, name, text) id,
#define FIELD(type, name)
#define END(NAME)
#include "agent/wire/events.def"
#undef EVENT
#undef FIELD
#undef END
};

static void fill(struct event *event, uint64_t *random)
{
	do
		event->id = ids[random_below(random, sizeof(ids) / sizeof(*ids))];
	while (!EVENT_IS_TIMELINE(event->id));
	switch (event->id) {
#define EVENT(number, NAME, name, text) \
	case number: {                  \
		struct event_##name *e = &event->name;
#define FIELD(type, name) e->name = (torsh_wire_##type)random_wide(random);
#define END(NAME) \
	break;    \
	}
#include "agent/wire/events.def"
#undef EVENT
#undef FIELD
#undef END
	}
}

static void make_events(struct timeline_event *events, uint64_t seed)
{
	uint64_t random = seed, now = 0;

	memset(events, 0, N_EVENTS * sizeof(*events));
	for (uint32_t i = 0; i < N_EVENTS; i++) {
		/* Now and then back: a thread's events may be late. */
		now += random_wide(&random) >> 30;
		events[i].at_ns = random_below(&random, 100) ? now : now / 2;
		events[i].thread = (uint32_t)random_below(&random, 4);
		events[i].stack = (uint32_t)random_wide(&random);
		fill(&events[i].event, &random);
	}
}

static void assert_same(const struct timeline_event *a, const struct timeline_event *b)
{
	assert_true(a->at_ns == b->at_ns);
	assert_int_equal(a->thread, b->thread);
	assert_int_equal(a->stack, b->stack);
	expect_same_event(&a->event, &b->event);
}

static struct message encode(struct timeline_writer *writer, const struct timeline_event *events)
{
	struct message message;

	for (uint32_t i = 0; i < N_EVENTS; i++)
		assert_int_equal(torsh_timeline_add(writer, &events[i]), 0);
	assert_int_equal(torsh_timeline_count(writer), N_EVENTS);
	assert_int_equal(
		torsh_timeline_take(writer, &message.n_events, &message.bytes, &message.n_bytes),
		0);
	assert_int_equal(torsh_timeline_count(writer), 0);
	return message;
}

static void what_goes_in_comes_out(void **state)
{
	struct timeline_event *events = malloc(N_EVENTS * sizeof(*events)), out;
	struct timeline_writer *writer = torsh_timeline_create();

	(void)state;
	/* The second message doesn't depend on the first. */
	for (uint64_t seed = 1; seed <= 2; seed++) {
		struct timeline_reader *reader;
		struct message message;

		make_events(events, seed);
		message = encode(writer, events);
		assert_int_equal(torsh_timeline_open(&reader, message.n_events, message.bytes,
						     message.n_bytes),
				 0);
		for (uint32_t i = 0; i < N_EVENTS; i++) {
			assert_int_equal(torsh_timeline_next(reader, &out), 1);
			assert_same(&events[i], &out);
		}
		assert_int_equal(torsh_timeline_next(reader, &out), 0);
		torsh_timeline_close(reader);
		free(message.bytes);
	}
	torsh_timeline_destroy(writer);
	free(events);
}

/* Reads to the end or to what is refused; never anything else. */
static uint32_t read_all(const struct message *message, uint32_t n_events, size_t n_bytes)
{
	struct timeline_reader *reader;
	struct timeline_event out;
	uint32_t n = 0;
	int rc = torsh_timeline_open(&reader, n_events, message->bytes, n_bytes);

	if (rc) {
		assert_int_equal(rc, -EPROTO);
		return 0;
	}
	while ((rc = torsh_timeline_next(reader, &out)) == 1)
		n++;
	assert_true(rc == 0 || rc == -EPROTO);
	torsh_timeline_close(reader);
	return n;
}

/* As written by a version without step numbers: columns 0 to 3 and that of its name. */
static void fields_of_later_versions_are_0(void **state)
{
	enum { NAME = 4 + 8 * EVENT_STEP };
	static const uint8_t bytes[] = {
		5,
		0,
		1,
		1,
		1,
		2,
		1,
		3,
		1,
		(NAME & 0x7f) | 0x80,
		NAME >> 7,
		1,
		2 * EVENT_STEP,
		2 * 9,
		2 * 2,
		0,
		2 * 7,
	};
	struct timeline_reader *reader;
	struct timeline_event out;

	(void)state;
	assert_int_equal(torsh_timeline_open(&reader, 1, bytes, sizeof(bytes)), 0);
	assert_int_equal(torsh_timeline_next(reader, &out), 1);
	assert_int_equal(out.event.id, EVENT_STEP);
	assert_int_equal(out.at_ns, 9);
	assert_int_equal(out.thread, 2);
	assert_int_equal(out.event.step.name, 7);
	assert_int_equal(out.event.step.number, 0);
	assert_int_equal(torsh_timeline_next(reader, &out), 0);
	torsh_timeline_close(reader);
}

static void a_message_without_bytes_is_refused(void **state)
{
	struct timeline_reader *reader;

	(void)state;
	assert_int_equal(torsh_timeline_open(&reader, 1, NULL, 0), -EPROTO);
}

static void what_was_cut_or_changed_is_refused(void **state)
{
	struct timeline_event *events = malloc(N_EVENTS * sizeof(*events));
	struct timeline_writer *writer = torsh_timeline_create();
	struct message message;
	uint64_t random = 3;

	(void)state;
	make_events(events, 3);
	message = encode(writer, events);
	assert_int_equal(read_all(&message, message.n_events + 1, message.n_bytes), N_EVENTS);
	for (uint32_t i = 0; i < 200; i++)
		assert_true(read_all(&message, message.n_events,
				     (size_t)random_below(&random, message.n_bytes)) < N_EVENTS);
	for (uint32_t i = 0; i < 200; i++) {
		message.bytes[random_below(&random, message.n_bytes)] ^=
			(uint8_t)(1 + random_below(&random, 255));
		read_all(&message, message.n_events, message.n_bytes);
	}
	free(message.bytes);
	torsh_timeline_destroy(writer);
	free(events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_goes_in_comes_out),
		cmocka_unit_test(fields_of_later_versions_are_0),
		cmocka_unit_test(what_was_cut_or_changed_is_refused),
		cmocka_unit_test(a_message_without_bytes_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
