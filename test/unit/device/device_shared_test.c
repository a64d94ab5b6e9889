/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The common peak of processes on one device is that of a plain replay of all changes in the order
 * of time; which devices are one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <unistd.h>

#include "test/unit/fixtures/random.h"
#include "test/unit/fixtures/recording_fixture.h"
#include "tools/device/memory/device_shared.h"
#include "tools/recording/read.h"

#define N_PROCESSES 4u
#define N_LEVELS 50u
#define N_ROUNDS 300u

/* Processes that have one device each. */
static struct {
	struct recorded_process processes[N_PROCESSES];
	struct recorded_function names[N_PROCESSES];
	struct recorded_tables tables[N_PROCESSES];
	struct prepass_process surveyed[N_PROCESSES];
	struct event_device given[N_PROCESSES];
	struct device_process items[N_PROCESSES];
	struct device_location places[N_PROCESSES];
	struct device_scope scopes[N_PROCESSES];
	struct device_level levels[N_PROCESSES][N_LEVELS];
	struct prepass prepass;
	struct memory_of_devices memory;
} all;

/* numbers: each process's number of the device; uuids: NULL is not reported. */
static void place(const uint32_t *numbers, char *const *uuids)
{
	for (size_t i = 0; i < N_PROCESSES; i++) {
		all.names[i].name = uuids[i];
		all.tables[i] =
			(struct recorded_tables){.functions = &all.names[i], .n_functions = 1};
		all.processes[i] = (struct recorded_process){.tables = &all.tables[i]};
		all.given[i] =
			(struct event_device){.device = numbers[i], .uuid = uuids[i] ? 1 : 0};
		all.surveyed[i] = (struct prepass_process){
			.process = &all.processes[i], .devices = {.items = &all.given[i], .n = 1}};
		all.scopes[i] = (struct device_scope){.kind = SCOPE_CUDA, .device = numbers[i]};
		all.places[i] =
			(struct device_location){.levels = all.levels[i], .n_levels = N_LEVELS};
		all.items[i] =
			(struct device_process){.process = &all.processes[i],
						.blocks = {.scopes = &all.scopes[i], .n_scopes = 1},
						.places = &all.places[i],
						.n_places = 1};
	}
	all.prepass = (struct prepass){.items = all.surveyed, .n = N_PROCESSES};
	all.memory = (struct memory_of_devices){
		.prepass = &all.prepass, .items = all.items, .n = N_PROCESSES};
}

/* Times of all processes are different ones. */
static void draw_levels(uint64_t *random)
{
	for (size_t i = 0; i < N_PROCESSES; i++) {
		uint64_t at_ns = i;

		for (size_t k = 0; k < N_LEVELS; k++) {
			at_ns += N_PROCESSES * (1 + random_below(random, 20));
			all.levels[i][k] = (struct device_level){
				.at_ns = at_ns, .bytes = random_below(random, 1000)};
		}
	}
}

static uint64_t bytes_at(size_t process, uint64_t at_ns)
{
	uint64_t bytes = 0;

	for (size_t k = 0; k < N_LEVELS && all.levels[process][k].at_ns <= at_ns; k++)
		bytes = all.levels[process][k].bytes;
	return bytes;
}

static void the_common_peak_is_that_of_a_replay(void **state)
{
	char uuid[] = "GPU-0";
	uint64_t random = 1;

	(void)state;
	for (size_t round = 0; round < N_ROUNDS; round++) {
		uint64_t best = 0, best_ns = 0;
		struct shared_devices shared;

		place((uint32_t[]){0, 1, 0, 7}, (char *[]){uuid, uuid, uuid, uuid});
		draw_levels(&random);
		for (uint64_t at_ns = 0; at_ns < N_PROCESSES * 20 * (N_LEVELS + 1); at_ns++) {
			uint64_t sum = 0;

			for (size_t i = 0; i < N_PROCESSES; i++)
				sum += bytes_at(i, at_ns);
			if (sum > best) {
				best = sum;
				best_ns = at_ns;
			}
		}
		torsh_shared_devices_find(&shared, &all.memory);
		assert_int_equal(shared.n, 1);
		assert_int_equal(shared.items[0].peak_bytes, best);
		assert_int_equal(shared.items[0].peak_ns, best_ns);
		for (size_t i = 0; i < N_PROCESSES; i++)
			assert_int_equal(shared.items[0].parts[i].bytes, bytes_at(i, best_ns));
		torsh_shared_devices_free(&shared);
	}
}

static void what_is_given_back_at_one_time_goes_first(void **state)
{
	char uuid[] = "GPU-0";
	struct shared_devices shared;

	(void)state;
	place((uint32_t[]){0, 0, 0, 0}, (char *[]){uuid, uuid, uuid, uuid});
	for (size_t i = 0; i < N_PROCESSES; i++)
		all.places[i].n_levels = 0;
	/* The first one's allocation and the second one's free have the same time. */
	all.levels[0][0] = (struct device_level){.at_ns = 20, .bytes = 100};
	all.levels[1][0] = (struct device_level){.at_ns = 10, .bytes = 70};
	all.levels[1][1] = (struct device_level){.at_ns = 20, .bytes = 0};
	all.places[0].n_levels = 1;
	all.places[1].n_levels = 2;
	torsh_shared_devices_find(&shared, &all.memory);
	assert_int_equal(shared.n, 1);
	assert_int_equal(shared.items[0].n_parts, 2);
	assert_int_equal(shared.items[0].peak_bytes, 100);
	torsh_shared_devices_free(&shared);
}

static void devices_are_the_same_by_their_uuids(void **state)
{
	char one[] = "GPU-1", two[] = "GPU-2";
	uint64_t random = 2;
	struct shared_devices shared;

	(void)state;
	draw_levels(&random);
	/* Different numbers of one device, the same number of two, and one that nobody shares. */
	place((uint32_t[]){0, 0, 3, 0}, (char *[]){one, two, one, (char[]){"GPU-3"}});
	torsh_shared_devices_find(&shared, &all.memory);
	assert_int_equal(shared.n, 1);
	assert_string_equal(shared.items[0].uuid, one);
	assert_ptr_equal(shared.items[0].parts[1].process, &all.items[2]);
	assert_true(torsh_shared_device_is_called(&shared.items[0], "cuda:3"));
	assert_false(torsh_shared_device_is_called(&shared.items[0], "cuda:1"));
	torsh_shared_devices_free(&shared);
}

static void where_one_has_no_uuid_it_is_the_number(void **state)
{
	char one[] = "GPU-1";
	uint64_t random = 3;
	struct shared_devices shared;

	(void)state;
	draw_levels(&random);
	place((uint32_t[]){0, 0, 1, DEVICE_NOT_KNOWN}, (char *[]){one, NULL, NULL, NULL});
	torsh_shared_devices_find(&shared, &all.memory);
	assert_int_equal(shared.n, 1);
	assert_null(shared.items[0].uuid);
	assert_int_equal(shared.items[0].n_parts, 2);
	torsh_shared_devices_free(&shared);
}

static void put_alloc(struct fixture *fixture, uint64_t at_ns, uint64_t bytes)
{
	const struct event event = {
		.id = EVENT_DEVICE_ALLOC,
		.device_alloc = {.kind = BLOCK_DEVICE, .address = 0x1000, .bytes = bytes}};

	fixture_event(fixture, at_ns, 0, &event);
}

/* The writer notices the first one's end late; the second has the memory by then. */
static void a_process_has_nothing_after_its_last_query(void **state)
{
	static struct fixture fixtures[2];
	const struct event query = {.id = EVENT_DEVICE_ROOM,
				    .device_room = {.total_bytes = 100, .is_asked = ROOM_AT_END}};
	char path[] = "/tmp/torsh-device-shared-XXXXXX", error[256];
	struct shared_devices shared;
	struct memory_of_devices memory;
	struct recording *recording;
	struct prepass prepass;

	(void)state;
	close(mkstemp(path));
	for (uint32_t i = 0; i < 2; i++) {
		fixture_start(&fixtures[i], i + 1, 100 + i);
		fixture_thread(&fixtures[i], 100 + i, "main");
		fixtures[i].process.end_ns = 9000;
	}
	put_alloc(&fixtures[0], 1000, 7);
	fixture_event(&fixtures[0], 2000, 0, &query);
	put_alloc(&fixtures[1], 3000, 5);
	fixture_write(path, fixtures, 2, 1000);
	recording = torsh_recording_read(path, 0, 0, error, sizeof(error));
	assert_non_null(recording);
	torsh_prepass_make(&prepass, recording, recording->processes, recording->n_processes);
	torsh_device_memory_collect(&memory, recording, recording->processes,
				    recording->n_processes, &prepass);
	torsh_shared_devices_find(&shared, &memory);
	assert_int_equal(shared.n, 1);
	assert_int_equal(shared.items[0].peak_bytes, 7);
	assert_int_equal(shared.items[0].peak_ns, 1000);
	torsh_shared_devices_free(&shared);
	torsh_device_memory_free(&memory);
	torsh_prepass_free(&prepass);
	torsh_recording_destroy(recording);
	fixture_free(&fixtures[0]);
	fixture_free(&fixtures[1]);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_common_peak_is_that_of_a_replay),
		cmocka_unit_test(what_is_given_back_at_one_time_goes_first),
		cmocka_unit_test(devices_are_the_same_by_their_uuids),
		cmocka_unit_test(where_one_has_no_uuid_it_is_the_number),
		cmocka_unit_test(a_process_has_nothing_after_its_last_query),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
