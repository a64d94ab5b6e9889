/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What is appended to a recording is read from it; a file that was cut or damaged anywhere yields
 * every intact chunk, and reports that something is missing.
 */
#include <stdbool.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "tools/store/recording_read.h"
#include "tools/store/recording_write.h"

#define N_CHUNKS 12u

struct bytes {
	uint8_t *data;
	size_t n;
	size_t ends[N_CHUNKS + 1]; /* where the header and each chunk end */
};

static int new_file(void)
{
	char path[] = "/tmp/torsh-recording-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	return fd;
}

/* Chunk number i: a row with a long text, incompressible in every third. */
static int append_numbered(struct recording_file *file, uint32_t i,
			   enum recording_priority priority, size_t n_text)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Process row = TORSH__PROCESS__INIT, *rows = &row;
	Torsh__Events events = TORSH__EVENTS__INIT, *events_row = &events;
	char *text = malloc(n_text + 1);
	uint64_t random = i;
	int result;

	for (size_t k = 0; k < n_text; k++)
		text[k] = (char)(i % 3 ? 'a' + i % 7 : ' ' + random_below(&random, 90));
	text[n_text] = '\0';
	row.has_process = 1;
	row.process = i;
	row.program = text;
	if (priority == RECORDING_EVENTS) {
		events.has_n_events = 1;
		events.n_events = i;
		chunk.n_events = 1;
		chunk.events = &events_row;
		events.has_columns = 1;
		events.columns.data = (uint8_t *)text;
		events.columns.len = n_text;
	} else {
		chunk.n_process = 1;
		chunk.process = &rows;
	}
	result = torsh_recording_append(file, &chunk, priority);
	free(text);
	return result;
}

static void make_bytes(struct bytes *bytes)
{
	const struct recording_limits limits = {0};
	int fd = new_file();
	struct recording_file *file = torsh_recording_create(fd, &limits, 12345);

	bytes->ends[0] = torsh_recording_written(file);
	for (uint32_t i = 0; i < N_CHUNKS; i++) {
		assert_int_equal(append_numbered(file, i, RECORDING_LAST, 50 + 40 * i), 0);
		bytes->ends[i + 1] = torsh_recording_written(file);
	}
	torsh_recording_finish(file);
	bytes->n = (size_t)lseek(fd, 0, SEEK_END);
	assert_int_equal(bytes->n, bytes->ends[N_CHUNKS]);
	bytes->data = malloc(bytes->n);
	assert_int_equal(pread(fd, bytes->data, bytes->n, 0), bytes->n);
	close(fd);
}

/* Which numbered chunks are read: a bit each. has_problem: the reader reports a problem. */
static uint32_t read_chunks(const uint8_t *data, size_t n, bool *has_problem)
{
	struct recording_reader *reader;
	Torsh__Chunk *chunk;
	uint32_t seen = 0;
	uint8_t *copy = malloc(n ? n : 1);

	/* At the end of its own memory, for AddressSanitizer. */
	memcpy(copy, data, n);
	assert_int_equal(torsh_recording_open_bytes(&reader, copy, n, NULL, 0), 0);
	while (torsh_recording_next(reader, &chunk) == 1) {
		assert_int_equal(chunk->n_process, 1);
		assert_int_equal(strlen(chunk->process[0]->program),
				 50 + 40 * chunk->process[0]->process);
		assert_int_equal(seen & 1u << chunk->process[0]->process, 0);
		seen |= 1u << chunk->process[0]->process;
		torsh__chunk__free_unpacked(chunk, NULL);
	}
	*has_problem = torsh_recording_problem(reader) != NULL;
	torsh_recording_close(reader);
	free(copy);
	return seen;
}

static void what_is_appended_is_read(void **state)
{
	struct bytes bytes;
	bool has_problem;

	(void)state;
	make_bytes(&bytes);
	assert_int_equal(read_chunks(bytes.data, bytes.n, &has_problem), (1u << N_CHUNKS) - 1);
	assert_false(has_problem);
	free(bytes.data);
}

static void a_torn_tail_loses_only_itself(void **state)
{
	struct bytes bytes;

	(void)state;
	make_bytes(&bytes);
	for (size_t n = bytes.ends[0]; n < bytes.n; n++) {
		uint32_t n_whole = 0;
		bool has_problem;

		while (n_whole < N_CHUNKS && bytes.ends[n_whole + 1] <= n)
			n_whole++;
		assert_int_equal(read_chunks(bytes.data, n, &has_problem), (1u << n_whole) - 1);
		assert_int_equal(has_problem, n != bytes.ends[n_whole]);
	}
	free(bytes.data);
}

static void a_damaged_byte_loses_only_its_chunk(void **state)
{
	struct bytes bytes;
	uint64_t random = 1;

	(void)state;
	make_bytes(&bytes);
	for (uint32_t i = 0; i < N_CHUNKS; i++) {
		for (int k = 0; k < 40; k++) {
			size_t at = bytes.ends[i] +
				    random_below(&random, bytes.ends[i + 1] - bytes.ends[i]);
			uint8_t flip = (uint8_t)(1u << random_below(&random, 8));
			bool has_problem;

			bytes.data[at] ^= flip;
			assert_int_equal(read_chunks(bytes.data, bytes.n, &has_problem),
					 ((1u << N_CHUNKS) - 1) & ~(1u << i));
			assert_true(has_problem);
			bytes.data[at] ^= flip;
		}
	}
	free(bytes.data);
}

/* Zeros, or another file's end, between and behind: what a crashed file system leaves. */
static void garbage_between_chunks_is_stepped_over(void **state)
{
	struct bytes bytes;
	uint8_t *longer;
	bool has_problem;

	(void)state;
	make_bytes(&bytes);
	longer = malloc(bytes.n + 5000);
	memcpy(longer, bytes.data, bytes.ends[4]);
	memset(longer + bytes.ends[4], 0, 5000);
	memcpy(longer + bytes.ends[4] + 777, "tchktchk", 8);
	memcpy(longer + bytes.ends[4] + 5000, bytes.data + bytes.ends[4], bytes.n - bytes.ends[4]);
	assert_int_equal(read_chunks(longer, bytes.n + 5000, &has_problem), (1u << N_CHUNKS) - 1);
	assert_true(has_problem);
	free(longer);
	free(bytes.data);
}

static void an_invalid_recording_is_reported(void **state)
{
	struct recording_reader *reader;
	char error[128] = "";
	struct bytes bytes;

	(void)state;
	make_bytes(&bytes);
	assert_int_equal(torsh_recording_open_bytes(&reader, bytes.data, 0, error, sizeof(error)),
			 -EPROTO);
	assert_non_null(strstr(error, "it is empty: its writer was killed"));
	assert_int_equal(torsh_recording_open_bytes(&reader,
						    "#!/bin/sh\nexit 0 # and some more bytes\n", 39,
						    error, sizeof(error)),
			 -EPROTO);
	assert_string_equal(error, "it is not a recording of torsh");
	bytes.data[8]++;
	assert_int_equal(
		torsh_recording_open_bytes(&reader, bytes.data, bytes.n, error, sizeof(error)),
		-EPROTO);
	assert_string_equal(error, "its format is 5, this version of torsh reads 1 to 4");
	bytes.data[8]--;
	bytes.data[16] ^= 1;
	assert_int_equal(
		torsh_recording_open_bytes(&reader, bytes.data, bytes.n, error, sizeof(error)),
		-EPROTO);
	assert_string_equal(error, "its header is damaged");
	assert_int_equal(torsh_recording_open(&reader, "/nowhere/at.all", error, sizeof(error)),
			 -ENOENT);
	assert_int_equal(torsh_recording_open(&reader, "/tmp", error, sizeof(error)), -EPROTO);
	free(bytes.data);
}

static void unwanted_kinds_are_left_out(void **state)
{
	const struct recording_limits limits = {0};
	char path[] = "/tmp/torsh-recording-XXXXXX";
	int fd = mkstemp(path);
	struct recording_file *file = torsh_recording_create(fd, &limits, 0);
	struct recording_reader *reader;
	Torsh__Chunk *chunk;
	uint32_t n = 0;

	(void)state;
	for (uint32_t i = 0; i < 10; i++)
		append_numbered(file, i, i % 2 ? RECORDING_EVENTS : RECORDING_LAST, 100);
	torsh_recording_finish(file);
	assert_int_equal(torsh_recording_open(&reader, path, NULL, 0), 0);
	torsh_recording_skip(reader, CHUNK_EVENTS);
	while (torsh_recording_next(reader, &chunk) == 1) {
		assert_int_equal(chunk->n_events, 0);
		torsh__chunk__free_unpacked(chunk, NULL);
		n++;
	}
	assert_int_equal(n, 5);
	assert_int_equal(torsh_recording_position(reader), torsh_recording_size(reader));
	torsh_recording_close(reader);
	close(fd);
	unlink(path);
}

static void a_lock_shows_that_it_is_being_written(void **state)
{
	char path[] = "/tmp/torsh-recording-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(torsh_recording_is_being_written(path), 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(torsh_recording_is_being_written(path), 1);
	close(fd);
	assert_int_equal(torsh_recording_is_being_written(path), 0);
	unlink(path);
	assert_int_equal(torsh_recording_is_being_written(path), -ENOENT);
}

/*
 * First the events stop, then the checkpoints; the last rows still come in, and nothing passes the
 * greatest size.
 */
static void the_greatest_size_is_kept(void **state)
{
	const struct recording_limits limits = {.max_bytes = 1 << 20};
	int fd = new_file(), result = 0;
	struct recording_file *file = torsh_recording_create(fd, &limits, 0);
	uint64_t n_events_stop, n_checkpoints_stop;

	(void)state;
	/* Multiples of 3 don't compress. */
	for (uint32_t i = 0; i < 300 && !result; i++)
		result = append_numbered(file, 3 * i, RECORDING_EVENTS, 10000);
	assert_int_equal(result, -ENOSPC);
	n_events_stop = torsh_recording_written(file);
	assert_non_null(torsh_recording_stopped(file, RECORDING_EVENTS));
	assert_null(torsh_recording_stopped(file, RECORDING_CHECKPOINT));
	for (uint32_t i = 0, stopped = 0; i < 300 && !stopped; i++)
		stopped = append_numbered(file, 3 * i, RECORDING_CHECKPOINT, 10000) != 0;
	n_checkpoints_stop = torsh_recording_written(file);
	assert_true(n_checkpoints_stop > n_events_stop);
	assert_non_null(torsh_recording_stopped(file, RECORDING_CHECKPOINT));
	assert_null(torsh_recording_stopped(file, RECORDING_LAST));
	assert_int_equal(append_numbered(file, 3, RECORDING_LAST, 100000), 0);
	assert_null(torsh_recording_missed(file));
	/* What is too large doesn't stop what is not, and is missed. */
	assert_int_equal(append_numbered(file, 3, RECORDING_LAST, 2000000), -ENOSPC);
	assert_non_null(torsh_recording_missed(file));
	assert_int_equal(append_numbered(file, 3, RECORDING_LAST, 1000), 0);
	torsh_recording_finish(file);
	assert_true(lseek(fd, 0, SEEK_END) <= 1 << 20);
	close(fd);
}

/* Put in place of what was there: that stays, and the recording isn't complete. */
static void what_is_larger_than_a_chunk_is_missed(void **state)
{
	const struct recording_limits limits = {0};
	static const enum recording_priority worths[] = {RECORDING_CHECKPOINT, RECORDING_LAST};
	char *text = malloc(CHUNK_RAW_MAX + 1);
	int fd = new_file();
	struct recording_file *file = torsh_recording_create(fd, &limits, 0);
	Torsh__Process row = TORSH__PROCESS__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	struct extent extent;

	(void)state;
	memset(text, 'a', CHUNK_RAW_MAX);
	text[CHUNK_RAW_MAX] = '\0';
	chunk.n_process = 1;
	chunk.process = &rows;
	assert_int_equal(torsh_recording_put(file, &chunk, RECORDING_CHECKPOINT, &extent), 0);
	row.program = text;
	for (uint32_t i = 0; i < 2; i++) {
		/* What a checkpoint lacks a later one may have. */
		assert_null(torsh_recording_missed(file));
		assert_int_equal(torsh_recording_put(file, &chunk, worths[i], &extent), -E2BIG);
		assert_int_equal(extent.n_bytes, 0);
	}
	assert_non_null(torsh_recording_missed(file));
	assert_string_equal(torsh_recording_missed(file), "a table is larger than a chunk may be");
	torsh_recording_finish(file);
	close(fd);
	free(text);
}

static void the_reserve_of_free_space_is_kept(void **state)
{
	const struct recording_limits limits = {.reserve_bytes = UINT64_C(1) << 60};
	int fd = new_file();
	struct recording_file *file = torsh_recording_create(fd, &limits, 0);

	(void)state;
	assert_int_equal(append_numbered(file, 1, RECORDING_CHECKPOINT, 100), -ENOSPC);
	assert_string_equal(torsh_recording_stopped(file, RECORDING_EVENTS),
			    "less than 1099511627776 MiB are free on the disk");
	assert_int_equal(append_numbered(file, 1, RECORDING_LAST, 100), 0);
	torsh_recording_finish(file);
	close(fd);
}

/*
 * A file system of 1 MiB: what was kept back for the last rows is there for them, and every chunk
 * is whole.
 */
static void a_full_disk_leaves_room_for_the_last_rows(void **state)
{
	const struct recording_limits limits = {0};
	char directory[] = "/tmp/torsh-small-XXXXXX", path[64];
	struct recording_reader *reader;
	struct recording_file *file;
	Torsh__Chunk *chunk;
	uint32_t n_last = 0;
	int fd, stopped = 0;

	(void)state;
	assert_non_null(mkdtemp(directory));
	if (mount("none", directory, "tmpfs", 0, "size=1m")) {
		rmdir(directory);
		skip();
	}
	snprintf(path, sizeof(path), "%s/x.torsh", directory);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	file = torsh_recording_create(fd, &limits, 0);
	for (uint32_t i = 0; i < 1000 && !stopped; i++)
		stopped = append_numbered(file, 3 * i, RECORDING_CHECKPOINT, 10000) != 0;
	assert_int_equal(stopped, 1);
	assert_non_null(torsh_recording_stopped(file, RECORDING_CHECKPOINT));
	for (uint32_t i = 0; i < 1000; i++)
		n_last += append_numbered(file, 3 * i, RECORDING_LAST, 10000) == 0;
	assert_true(n_last >= 20);
	torsh_recording_finish(file);
	assert_int_equal(torsh_recording_open(&reader, path, NULL, 0), 0);
	while (torsh_recording_next(reader, &chunk) == 1)
		torsh__chunk__free_unpacked(chunk, NULL);
	assert_null(torsh_recording_problem(reader));
	torsh_recording_close(reader);
	close(fd);
	umount(directory);
	rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_appended_is_read),
		cmocka_unit_test(a_torn_tail_loses_only_itself),
		cmocka_unit_test(a_damaged_byte_loses_only_its_chunk),
		cmocka_unit_test(garbage_between_chunks_is_stepped_over),
		cmocka_unit_test(an_invalid_recording_is_reported),
		cmocka_unit_test(unwanted_kinds_are_left_out),
		cmocka_unit_test(a_lock_shows_that_it_is_being_written),
		cmocka_unit_test(the_greatest_size_is_kept),
		cmocka_unit_test(what_is_larger_than_a_chunk_is_missed),
		cmocka_unit_test(the_reserve_of_free_space_is_kept),
		cmocka_unit_test(a_full_disk_leaves_room_for_the_last_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
