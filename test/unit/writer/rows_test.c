/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Tables with more rows than a chunk has room for are in the recording, whole. */
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
#include "tools/recording/read.h"
#include "tools/store/recording_format.h"
#include "tools/writer/output/rows/rows.h"

#define N_ADDRESSES 1100u
#define N_MAPPINGS (N_ADDRESSES * N_ADDRESSES - 1) /* with values of 10 bytes: 70 MB */
#define N_BLOCKS 200000u
#define N_STEPS 8u

static struct fake_channel channel;
static struct target *target;
static uint32_t *stacks; /* N_ADDRESSES^2 */
static char path[32];

/* Stacks of two frames: each number of an address below each. */
static void make_stacks(void)
{
	stacks = malloc(N_ADDRESSES * N_ADDRESSES * sizeof(*stacks));
	assert_non_null(stacks);
	for (uint32_t i = 0; i < N_ADDRESSES; i++) {
		uint32_t outer = torsh_stacks_below(
			&target->state.tables->stacks, 0,
			(uint32_t)torsh_process_code_number(&target->state.code, i + 1));

		for (uint32_t k = 0; k < N_ADDRESSES; k++)
			stacks[i * N_ADDRESSES + k] = torsh_stacks_below(
				&target->state.tables->stacks, outer,
				(uint32_t)torsh_process_code_number(&target->state.code, k + 1));
	}
}

static int start(void **state)
{
	const struct clock_conversion clock = {0};

	(void)state;
	fake_channel_create(&channel, 1);
	assert_int_equal(torsh_target_create(&target, dup(channel.fd), getpid(), -1), 0);
	target->number = 1;
	torsh_target_begin(target, &clock, NULL);
	return 0;
}

static int finish(void **state)
{
	(void)state;
	torsh_target_destroy(target);
	fake_channel_destroy(&channel);
	free(stacks);
	stacks = NULL;
	return 0;
}

/* A block of each stack, all allocated in the later ones of the steps, and alive. */
static void allocate(void)
{
	struct heap *heap = &target->state.heap;
	struct heap_producer producer = {0};
	uint64_t stamp = 1;

	for (uint32_t step = 0; step <= N_STEPS; step++) {
		uint32_t n = step < N_STEPS / 4 || step == N_STEPS
				     ? 0
				     : N_BLOCKS / (N_STEPS - N_STEPS / 4) + 1;

		assert_true(
			torsh_step_marks_mark(&target->state.steps, STEP_BY_MARK, step, stamp++));
		for (uint32_t i = 0; i < n && heap->tracker.n < N_BLOCKS; i++) {
			struct heap_alloc alloc = {.stamp = stamp,
						   .address = 4096 + 64 * stamp,
						   .size = 100 + step,
						   .usable = 128};

			alloc.site = torsh_heap_site(heap, stacks[heap->tracker.n]);
			torsh_heap_alloc(heap, &producer, &alloc);
			stamp++;
		}
	}
	target->state.last_stamp = stamp;
}

static void map(uint64_t *random)
{
	struct mappings *mappings = &target->state.mappings;
	struct map_site *sites = calloc(N_MAPPINGS + 1, sizeof(*sites));

	assert_non_null(sites);
	for (uint32_t i = 1; i <= N_MAPPINGS; i++) {
		sites[i].stack = stacks[i];
		sites[i].total_bytes = random_next(random) | UINT64_C(1) << 63;
		sites[i].live.bytes = random_next(random) | UINT64_C(1) << 63;
		sites[i].live.n = random_next(random) | UINT64_C(1) << 62;
		sites[i].live.base_bytes = random_next(random) >> 1 | UINT64_C(1) << 62;
		sites[i].live.base_n = random_next(random) >> 1 | UINT64_C(1) << 62;
		sites[i].live.seen = UINT32_MAX - i;
	}
	free(mappings->sites);
	mappings->sites = sites;
	mappings->n_sites = mappings->site_capacity = N_MAPPINGS + 1;
}

/* As of a checkpoint, and at the end; read back. */
static struct recording *write_and_read(int fd)
{
	struct recording_file *file = torsh_recording_create(fd, &(struct recording_limits){0}, 1);
	char error[256];
	struct recording *recording;

	torsh_rows_session(file, &(struct rows_session){.start_realtime_ns = 1});
	torsh_rows_target(file, target, RECORDING_CHECKPOINT);
	assert_int_equal(target->rows->has_missed, 0);
	torsh_rows_target(file, target, RECORDING_LAST);
	assert_int_equal(target->rows->has_missed, 0);
	if (torsh_recording_missed(file))
		fail_msg("missed: %s", torsh_recording_missed(file));
	torsh_rows_end(file, &(struct rows_end){.is_complete = 1});
	torsh_recording_finish(file);
	recording = torsh_recording_read(path, 0, 0, error, sizeof(error));
	if (!recording)
		fail_msg("%s", error);
	assert_int_equal(recording->n_bad_rows, 0);
	assert_int_equal(recording->is_truncated, 0);
	assert_int_equal(recording->n_processes, 1);
	return recording;
}

static int new_file(void)
{
	int fd;

	strcpy(path, "/tmp/torsh-rows-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	return fd;
}

static void totals_of_more_than_a_chunk_are_whole(void **state)
{
	uint64_t random = 1;
	const struct recorded_process *process;
	const struct recorded_survivors *survivors;
	struct recording *recording;
	int fd = new_file();

	(void)state;
	make_stacks();
	allocate();
	map(&random);
	recording = write_and_read(fd);
	process = recording->processes[0];
	assert_int_equal(process->totals.n, N_BLOCKS);
	assert_int_equal(process->live.n, N_BLOCKS);
	assert_int_equal(process->mappings.n, N_MAPPINGS + 1);
	for (uint32_t i = 1; i <= N_MAPPINGS; i++) {
		const struct recorded_mapping *mapping =
			torsh_recording_row(&process->mappings, stacks[i], sizeof(*mapping));

		assert_non_null(mapping);
		assert_int_equal(mapping->total_bytes, target->state.mappings.sites[i].total_bytes);
	}
	assert_int_equal(process->steps.n_steps, N_STEPS + 1);
	assert_int_equal(process->survivors.n, N_BLOCKS);
	for (uint32_t i = 0; i < N_BLOCKS; i++) {
		survivors = torsh_recording_row(&process->survivors, stacks[i], sizeof(*survivors));
		assert_non_null(survivors);
		assert_int_equal(survivors->late_blocks, 1);
	}
	torsh_recording_destroy(recording);
	close(fd);
	unlink(path);
}

#define NAME_BYTES 700u
#define N_FUNCTIONS 100000u /* of 70 MB in all */

static void names_of_more_than_a_chunk_are_whole(void **state)
{
	struct code_table *code = &target->state.tables->code;
	uint64_t random = 2;
	struct recording *recording;
	int fd = new_file();

	(void)state;
	code->functions = calloc(N_FUNCTIONS, sizeof(*code->functions));
	assert_non_null(code->functions);
	for (uint32_t i = 0; i < N_FUNCTIONS; i++) {
		char *name = malloc(NAME_BYTES + 1);

		assert_non_null(name);
		for (uint32_t k = 0; k < NAME_BYTES; k++)
			name[k] = (char)('a' + random_below(&random, 26));
		name[NAME_BYTES] = '\0';
		code->functions[i] =
			(struct code_function){.name = name, .file = calloc(1, 1), .first_line = i};
	}
	code->n_functions = code->function_capacity = N_FUNCTIONS;
	recording = write_and_read(fd);
	assert_int_equal(recording->processes[0]->tables->n_functions, N_FUNCTIONS);
	for (uint32_t i = 0; i < N_FUNCTIONS; i++)
		assert_string_equal(recording->processes[0]->tables->functions[i].name,
				    code->functions[i].name);
	torsh_recording_destroy(recording);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(totals_of_more_than_a_chunk_are_whole, start,
						finish),
		cmocka_unit_test_setup_teardown(names_of_more_than_a_chunk_are_whole, start,
						finish),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
