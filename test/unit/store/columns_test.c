/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Events put into columns come out as they were, in their order; bytes that are no columns are
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

#include "agent/wire/codec.h"
#include "test/unit/fixtures/random.h"
#include "test/unit/fixtures/same_event.h"
#include "test/unit/fixtures/sanitized.h"
#include "tools/store/events_columns.h"

#define N_EVENTS 60000u
#define N_PLACES 3000u

struct trace {
	struct columns_event events[N_EVENTS];
	uint32_t n;
};

struct message {
	uint64_t first_ns;
	uint32_t n_events;
	uint8_t *bytes;
	size_t n_bytes;
};

static void some_cold(uint64_t *random, struct columns_event *event)
{
	switch (random_below(random, 3)) {
	case 0:
		event->event.id = EVENT_MAP;
		event->event.map = (struct event_map){
			.address = random_wide(random),
			.length = random_wide(random),
			.flags = (uint32_t)random_wide(random),
			.descriptor = -1,
			.offset = random_wide(random),
		};
		event->stack = (uint32_t)random_below(random, 1000);
		break;
	case 1:
		event->event.id = EVENT_EXIT;
		event->event.exit = (struct event_exit){.status = -3, .how = EXIT_BY_QUICK};
		break;
	default:
		event->event.id = EVENT_LOST;
		event->event.lost.allocs = random_wide(random);
		break;
	}
}

/* What an allocator with a few threads does, and now and then what none would. */
static void make_trace(struct trace *trace, uint64_t seed)
{
	uint64_t random = seed, now = random_wide(&random) >> 16, live[N_PLACES] = {0};

	memset(trace, 0, sizeof(*trace));
	for (; trace->n < N_EVENTS; trace->n++) {
		struct columns_event *event = &trace->events[trace->n];
		uint32_t place = (uint32_t)random_below(&random, N_PLACES);

		now += random_below(&random, 3) ? random_below(&random, 900)
						: random_wide(&random) >> 30;
		event->at_ns = now;
		event->thread = random_below(&random, 20) ? (uint32_t)(trace->n / 50 % 5)
							  : (uint32_t)random_wide(&random);
		if (random_below(&random, 50) == 0) {
			some_cold(&random, event);
		} else if (live[place] && random_below(&random, 100)) {
			event->event.id =
				random_below(&random, 6) ? EVENT_FREE : EVENT_REALLOC_BEGIN;
			event->event.free.address = live[place];
			live[place] = 0;
		} else if (random_below(&random, 100) == 0) {
			event->event.id = EVENT_FREE;
			event->event.free.address = random_wide(&random);
		} else {
			struct event_alloc *alloc = &event->event.alloc;

			event->event.id = EVENT_ALLOC;
			event->stack = (uint32_t)random_below(
				&random, random_below(&random, 30) ? 40 : UINT32_MAX);
			alloc->size = event->stack < 40 ? event->stack * 8 : random_wide(&random);
			alloc->usable = torsh_codec_expected_usable(alloc->size);
			if (random_below(&random, 20) == 0)
				alloc->usable = random_wide(&random);
			alloc->entry = (uint32_t)random_below(
				&random, random_below(&random, 10) ? 1 : N_ALLOC_ENTRIES);
			alloc->address = 0x555500000000 + 320 * (uint64_t)place;
			if (random_below(&random, 20) == 0)
				alloc->address = random_wide(&random) | 1;
			live[place] = alloc->address;
		}
	}
}

static void assert_same(const struct columns_event *a, const struct columns_event *b)
{
	assert_int_equal(a->at_ns / COLUMNS_STEP_NS * COLUMNS_STEP_NS, b->at_ns);
	assert_int_equal(a->thread, b->thread);
	assert_int_equal(a->stack, b->stack);
	expect_same_event(&a->event, &b->event);
}

static struct message encode(struct columns_writer *writer, const struct trace *trace)
{
	struct message message;

	for (uint32_t i = 0; i < trace->n; i++)
		assert_int_equal(torsh_columns_add(writer, &trace->events[i]), 0);
	assert_int_equal(torsh_columns_count(writer), trace->n);
	assert_int_equal(torsh_columns_take(writer, &message.first_ns, &message.n_events,
					    &message.bytes, &message.n_bytes),
			 0);
	return message;
}

static void what_goes_in_comes_out(void **state)
{
	static struct trace trace;
	struct columns_writer *writer = torsh_columns_create();

	(void)state;
	/* One writer for all: each message stands alone. */
	for (uint64_t seed = 1; seed <= UNLESS_SANITIZED(8, 2); seed++) {
		struct columns_reader *reader;
		struct columns_event event;
		struct message message;

		make_trace(&trace, seed);
		message = encode(writer, &trace);
		assert_int_equal(torsh_columns_open(&reader, message.first_ns, message.n_events,
						    message.bytes, message.n_bytes),
				 0);
		for (uint32_t i = 0; i < trace.n; i++) {
			assert_int_equal(torsh_columns_next(reader, &event), 1);
			assert_same(&trace.events[i], &event);
		}
		assert_int_equal(torsh_columns_next(reader, &event), 0);
		torsh_columns_close(reader);
		free(message.bytes);
	}
	torsh_columns_destroy(writer);
}

static void read_to_the_end(const struct message *message, const uint8_t *bytes, size_t n)
{
	struct columns_reader *reader;
	struct columns_event event;
	uint8_t *copy = malloc(n ? n : 1);
	int result;

	memcpy(copy, bytes, n);
	result = torsh_columns_open(&reader, message->first_ns, message->n_events, copy, n);
	assert_true(result == 0 || result == -EPROTO);
	if (!result) {
		do
			result = torsh_columns_next(reader, &event);
		while (result == 1);
		assert_true(result == 0 || result == -EPROTO);
		torsh_columns_close(reader);
	}
	free(copy);
}

static void damaged_columns_are_read_or_refused(void **state)
{
	static struct trace trace;
	struct columns_writer *writer = torsh_columns_create();
	struct message message;
	uint64_t random = 3;

	(void)state;
	make_trace(&trace, 9);
	trace.n = 500;
	message = encode(writer, &trace);
	for (size_t n = 0; n < message.n_bytes; n++)
		read_to_the_end(&message, message.bytes, n);
	for (int i = 0; i < 20000; i++) {
		uint8_t *byte = &message.bytes[random_below(&random, message.n_bytes)],
			before = *byte;

		*byte = (uint8_t)random_next(&random);
		read_to_the_end(&message, message.bytes, message.n_bytes);
		if (random_below(&random, 2))
			*byte = before;
	}
	free(message.bytes);
	torsh_columns_destroy(writer);
}

static void a_message_has_a_greatest_length(void **state)
{
	struct columns_writer *writer = torsh_columns_create();
	const struct columns_event event = {.event = {.id = EVENT_FREE, .free.address = 0x1000}};
	struct message message;

	(void)state;
	for (uint32_t i = 0; i < COLUMNS_EVENTS_MAX; i++)
		assert_int_equal(torsh_columns_add(writer, &event), 0);
	assert_int_equal(torsh_columns_add(writer, &event), -ENOSPC);
	assert_int_equal(torsh_columns_take(writer, &message.first_ns, &message.n_events,
					    &message.bytes, &message.n_bytes),
			 0);
	assert_int_equal(message.n_events, COLUMNS_EVENTS_MAX);
	assert_int_equal(torsh_columns_add(writer, &event), 0);
	free(message.bytes);
	torsh_columns_destroy(writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_goes_in_comes_out),
		cmocka_unit_test(damaged_columns_are_read_or_refused),
		cmocka_unit_test(a_message_has_a_greatest_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
