/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Moments of a heap equal copies of all its sites that were taken at the same times, however many
 * moments were removed in between; there are never more of them than there may be. A recording has
 * them all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/unit/fixtures/channel_fixture.h"
#include "test/unit/fixtures/random.h"
#include "test/unit/fixtures/sanitized.h"
#include "tools/recording/read.h"
#include "tools/store/recording_format.h"
#include "tools/writer/output/rows/rows.h"

#define N_SITES 300u
#define N_PLACES 2000u
#define N_EVENTS UNLESS_SANITIZED(400000u, 60000u)
#define N_COPIES 4096u
#define LABEL 7u

/* What all sites had when a moment of that number was taken. */
struct copy {
	uint32_t number;
	uint64_t bytes[N_SITES], n[N_SITES];
};

static struct fake_channel channel;
static struct target *target;
static struct heap *heap;
static struct heap_producer producer;
static uint32_t sites[N_SITES];
static struct copy *copies;
static uint32_t n_copies;

static int start(void **state)
{
	const struct clock_conversion clock = {0};

	(void)state;
	fake_channel_create(&channel, 1);
	assert_int_equal(torsh_target_create(&target, dup(channel.fd), getpid(), -1), 0);
	target->number = 1;
	torsh_target_begin(target, &clock, NULL);
	heap = &target->state.heap;
	producer = (struct heap_producer){0};
	for (uint32_t i = 0; i < N_SITES; i++)
		sites[i] = torsh_heap_site(heap,
					   torsh_stacks_below(&target->state.tables->stacks, 0,
							      (uint32_t)torsh_process_code_number(
								      &target->state.code, i + 1)));
	copies = calloc(N_COPIES, sizeof(*copies));
	assert_non_null(copies);
	n_copies = 0;
	return 0;
}

static int finish(void **state)
{
	(void)state;
	torsh_target_destroy(target);
	fake_channel_destroy(&channel);
	free(copies);
	return 0;
}

static void copy_sites(void)
{
	struct copy *copy = &copies[n_copies++];

	assert_true(n_copies <= N_COPIES);
	copy->number = heap->moments.n_taken;
	for (uint32_t i = 0; i < N_SITES; i++) {
		copy->bytes[i] = torsh_heap_totals(heap, sites[i]).live.bytes;
		copy->n[i] = torsh_heap_totals(heap, sites[i]).live.n;
	}
}

/* A block comes or goes; few sites change often. */
static void change_heap(uint64_t *random, uint64_t stamp, uint8_t *is_live)
{
	uint32_t place = (uint32_t)random_below(random, N_PLACES);
	uint32_t site = (uint32_t)random_below(random, random_below(random, 8) ? 10 : N_SITES);

	if (is_live[place])
		torsh_heap_free(heap, &producer, stamp, 4096 + 64 * (uint64_t)place);
	else
		torsh_heap_alloc(heap, &producer,
				 &(struct heap_alloc){.stamp = stamp,
						      .address = 4096 + 64 * (uint64_t)place,
						      .size = random_below(random, 1000),
						      .site = sites[site]});
	is_live[place] = !is_live[place];
}

static void take_some(uint64_t *random, uint64_t stamp)
{
	uint32_t n_taken = heap->moments.n_taken;

	if (random_below(random, 400) == 0)
		torsh_moments_event(heap, stamp,
				    &(struct moment_event){.kind = MOMENT_BY_STEP,
							   .name = (uint32_t)stamp,
							   .n_steps = stamp + 1});
	if (heap->moments.n_taken == n_taken && random_below(random, 1000) == 0)
		torsh_moments_event(heap, stamp,
				    &(struct moment_event){.kind = MOMENT_BY_MARK, .name = LABEL});
	if (heap->moments.n_taken == n_taken && random_below(random, 2000) == 0)
		torsh_moments_resident(heap, stamp, stamp);
	if (heap->moments.n_taken == n_taken)
		torsh_moments_point(heap, stamp, 100);
	if (heap->moments.n_taken != n_taken)
		copy_sites();
}

static void run(uint64_t seed)
{
	uint64_t random = seed;
	uint8_t is_live[N_PLACES] = {0};

	for (uint64_t stamp = 1; stamp <= N_EVENTS; stamp++) {
		take_some(&random, stamp);
		change_heap(&random, stamp, is_live);
	}
	target->state.last_stamp = N_EVENTS;
}

static const struct copy *copy_of(uint32_t number)
{
	for (uint32_t i = 0; i < n_copies; i++) {
		if (copies[i].number == number)
			return &copies[i];
	}
	fail_msg("there was no moment %u", number);
	return NULL;
}

static void moments_equal_copies_of_all_sites(void **state)
{
	uint64_t bytes[N_SITES] = {0}, n[N_SITES] = {0};
	const struct moments *moments;

	(void)state;
	run(1);
	moments = &heap->moments;
	for (uint32_t kind = 0; kind < MOMENT_BY_RESIDENT; kind++)
		assert_in_range(moments->n_of[kind], MOMENTS_OF_KIND / 4, MOMENTS_OF_KIND);
	assert_int_equal(moments->n_of[MOMENT_BY_RESIDENT], 1);
	for (uint32_t i = 0; i < moments->n; i++) {
		const struct moment *moment = &moments->items[i];
		const struct copy *copy = copy_of(moment->number);
		struct moment_sites_reader reader = torsh_moment_sites_read(&moment->sites);
		struct moment_site usage;

		while (torsh_moment_sites_next(&reader, &usage)) {
			bytes[usage.site - sites[0]] = usage.bytes;
			n[usage.site - sites[0]] = usage.n;
		}
		assert_memory_equal(bytes, copy->bytes, sizeof(bytes));
		assert_memory_equal(n, copy->n, sizeof(n));
	}
}

/* As of two checkpoints, and at the end; read back. */
static struct recording *write_and_read(uint64_t *random, uint8_t *is_live)
{
	char path[] = "/tmp/torsh-moments-XXXXXX", error[256];
	int fd = mkstemp(path);
	struct recording_file *file = torsh_recording_create(fd, &(struct recording_limits){0}, 1);
	struct recording *recording;

	torsh_rows_session(file, &(struct rows_session){.start_realtime_ns = 1});
	for (uint64_t stamp = 1; stamp <= N_EVENTS; stamp++) {
		take_some(random, stamp);
		change_heap(random, stamp, is_live);
		if (stamp % (N_EVENTS / 10) == 0)
			torsh_rows_target(file, target, RECORDING_CHECKPOINT);
	}
	torsh_rows_target(file, target, RECORDING_LAST);
	assert_false(target->rows->has_missed);
	torsh_rows_end(file, &(struct rows_end){.is_complete = 1});
	torsh_recording_finish(file);
	recording = torsh_recording_read(path, 0, 0, error, sizeof(error));
	if (!recording)
		fail_msg("%s", error);
	assert_int_equal(recording->n_bad_rows, 0);
	close(fd);
	unlink(path);
	return recording;
}

/* Those that were removed after they were written may be there too, and are as right. */
static void a_recording_has_all_moments(void **state)
{
	uint64_t random = 2, bytes[N_SITES] = {0}, n[N_SITES] = {0};
	uint8_t is_live[N_PLACES] = {0};
	const struct recorded_process *process;
	struct recording *recording;
	uint32_t n_found = 0;

	(void)state;
	recording = write_and_read(&random, is_live);
	process = recording->processes[0];
	for (uint32_t i = 0; i < process->n_moments; i++) {
		const struct recorded_moment *moment = &process->moments[i];
		const struct copy *copy = copy_of(moment->number);
		struct usage_at usage = {0};

		while (torsh_usage_list_next(&moment->usages, &usage)) {
			uint32_t site = usage.number - heap->sites[sites[0]].stack;

			bytes[site] = usage.bytes;
			n[site] = usage.blocks;
		}
		assert_memory_equal(bytes, copy->bytes, sizeof(bytes));
		assert_memory_equal(n, copy->n, sizeof(n));
		assert_int_equal(moment->n_steps,
				 moment->kind == RECORDED_MOMENT_BY_STEP ? moment->name + 1 : 0);
		while (n_found < heap->moments.n &&
		       heap->moments.items[n_found].number <= moment->number)
			assert_int_equal(heap->moments.items[n_found++].number, moment->number);
	}
	assert_int_equal(n_found, heap->moments.n);
	torsh_recording_destroy(recording);
}

static void lifetimes_are_counted_by_their_length(void **state)
{
	static const uint64_t ages[] = {0, 1, 2, 3, 4, 1000};
	static const uint32_t classes[] = {0, 1, 2, 2, 3, 10};
	uint64_t stamp = 1;

	(void)state;
	for (uint32_t i = 0; i < sizeof(ages) / sizeof(*ages); i++) {
		torsh_heap_alloc(
			heap, &producer,
			&(struct heap_alloc){
				.stamp = stamp, .address = 4096, .size = 10 + i, .site = sites[0]});
		stamp += ages[i];
		torsh_heap_free(heap, &producer, stamp, 4096);
		assert_int_equal(heap->lifetimes[classes[i]].blocks, i == 3 ? 2 : 1);
		assert_in_range(heap->lifetimes[classes[i]].bytes, 10 + i, 25);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(moments_equal_copies_of_all_sites, start, finish),
		cmocka_unit_test_setup_teardown(a_recording_has_all_moments, start, finish),
		cmocka_unit_test_setup_teardown(lifetimes_are_counted_by_their_length, start,
						finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
