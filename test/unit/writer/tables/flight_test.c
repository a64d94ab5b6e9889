/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A flight recorder's file has the messages that an array says, whatever the limit, and does not
 * grow with the run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/store/recording_read.h"
#include "tools/writer/output/flight.h"

#define STEP_NS UINT64_C(1000000000)
#define EVENTS 10u /* of a message */
#define PAYLOAD 4096u
#define SETTLE_EVERY 4u

struct flown {
	char path[32];
	struct recording_file *file;
	struct flight flight;
	struct timeline_passed passed[2];
	uint64_t n; /* messages so far: number i begins at i steps */
};

static void begin(struct flown *flown, enum flight_unit unit, uint64_t amount)
{
	const struct recording_limits none = {0};

	*flown = (struct flown){.path = "/tmp/torsh-flight-XXXXXX",
				.flight.limit = {.unit = unit, .amount = amount}};
	flown->file = torsh_recording_create(mkstemp(flown->path), &none, 1);
	assert_non_null(flown->file);
}

/* One message of process 1 or 2, of a step; bytes that zstd can't make fewer. */
static void put(struct flown *flown, uint32_t process)
{
	static uint32_t random = 1;
	Torsh__Timeline row = TORSH__TIMELINE__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	uint8_t bytes[PAYLOAD];
	struct flight_chunk about = {
		.process = process,
		.n_events = EVENTS,
		.first_ns = flown->n * STEP_NS + 1,
		.last_ns = flown->n * STEP_NS + STEP_NS,
		.n_steps = process == 1 ? flown->n + 1 : 0,
		.passed = &flown->passed[process - 1],
	};

	for (uint32_t i = 0; i < PAYLOAD; i++) {
		random = random * 1664525u + 1013904223u;
		bytes[i] = (uint8_t)(random >> 24);
	}
	row.has_process = row.has_events_before = row.has_columns = true;
	row.process = process;
	row.events_before = flown->n;
	row.columns = (ProtobufCBinaryData){.len = PAYLOAD, .data = bytes};
	chunk.n_timeline = 1;
	chunk.timeline = &rows;
	assert_int_equal(torsh_flight_put(&flown->flight, flown->file, &chunk, &about), 0);
	if (process == 1)
		flown->n++;
	if (flown->n % SETTLE_EVERY == 0)
		torsh_recording_settle(flown->file);
}

/* Returns how many messages of the process a reader finds, in order; *first: the first's number. */
static uint64_t found(struct flown *flown, uint32_t process, uint64_t *first)
{
	struct recording_reader *reader;
	Torsh__Chunk *chunk;
	uint64_t n = 0, last = 0;

	assert_int_equal(torsh_recording_open(&reader, flown->path, NULL, 0), 0);
	while (torsh_recording_next(reader, &chunk) == 1) {
		for (size_t i = 0; i < chunk->n_timeline; i++) {
			if (chunk->timeline[i]->process != process)
				continue;
			assert_true(!n || chunk->timeline[i]->events_before > last);
			last = chunk->timeline[i]->events_before;
			*first = n++ ? *first : last;
		}
		torsh__chunk__free_unpacked(chunk, NULL);
	}
	assert_null(torsh_recording_problem(reader));
	torsh_recording_close(reader);
	return n;
}

static void end(struct flown *flown)
{
	torsh_flight_destroy(&flown->flight);
	torsh_recording_finish(flown->file);
	unlink(flown->path);
}

static void the_last_seconds_are_there(void **state)
{
	struct flown flown;
	uint64_t first = 0;

	(void)state;
	begin(&flown, FLIGHT_NS, 10 * STEP_NS);
	for (int i = 0; i < 100; i++)
		put(&flown, 1);
	/* Until 100: what ended at 90 or later, which are the messages from 89 on. */
	assert_int_equal(found(&flown, 1, &first), 11);
	assert_int_equal(first, 89);
	assert_int_equal(flown.passed[0].n_events, 89 * EVENTS);
	assert_true(flown.passed[0].from_ns == 89 * STEP_NS + 1);
	end(&flown);
}

static void the_last_steps_are_there_of_all_processes(void **state)
{
	struct flown flown;
	uint64_t first = 0;

	(void)state;
	begin(&flown, FLIGHT_STEPS, 20);
	for (int i = 0; i < 100; i++) {
		put(&flown, 2);
		put(&flown, 1);
	}
	assert_int_equal(found(&flown, 1, &first), 21);
	assert_int_equal(first, 79);
	/* The other one takes no steps: of it is there what is not older. */
	assert_int_equal(found(&flown, 2, &first), 21);
	assert_int_equal(first, 79);
	end(&flown);
}

static void bytes_are_a_limit_and_the_file_stays(void **state)
{
	struct flown flown;
	uint64_t first = 0, n_bytes;

	(void)state;
	begin(&flown, FLIGHT_BYTES, 50 * PAYLOAD);
	for (int i = 0; i < 200; i++)
		put(&flown, 1);
	n_bytes = torsh_recording_written(flown.file);
	assert_true(n_bytes < 70 * (PAYLOAD + 200));
	for (int i = 0; i < 2000; i++)
		put(&flown, 1);
	assert_true(torsh_recording_written(flown.file) <= n_bytes + 2 * (PAYLOAD + 200));
	/* Each has a header, so that there are a little fewer. */
	assert_in_range(found(&flown, 1, &first), 45, 50);
	assert_true(first >= 2150);
	end(&flown);
}

static void nothing_passes_while_it_is_held(void **state)
{
	struct flown flown;
	uint64_t first = 0;

	(void)state;
	begin(&flown, FLIGHT_STEPS, 5);
	for (int i = 0; i < 10; i++)
		put(&flown, 1);
	flown.flight.is_held = true;
	for (int i = 0; i < 10; i++)
		put(&flown, 1);
	assert_int_equal(found(&flown, 1, &first), 16);
	assert_int_equal(first, 4);
	flown.flight.is_held = false;
	put(&flown, 1);
	assert_int_equal(found(&flown, 1, &first), 6);
	end(&flown);
}

static void an_ended_process_is_not_written_to(void **state)
{
	struct flown flown;

	(void)state;
	begin(&flown, FLIGHT_STEPS, 5);
	put(&flown, 2);
	torsh_flight_leave(&flown.flight, &flown.passed[1]);
	for (int i = 0; i < 20; i++)
		put(&flown, 1);
	assert_int_equal(flown.passed[1].n_events, 0);
	assert_int_equal(flown.passed[0].n_events, 14 * EVENTS);
	end(&flown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_seconds_are_there),
		cmocka_unit_test(the_last_steps_are_there_of_all_processes),
		cmocka_unit_test(bytes_are_a_limit_and_the_file_stays),
		cmocka_unit_test(nothing_passes_while_it_is_held),
		cmocka_unit_test(an_ended_process_is_not_written_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
