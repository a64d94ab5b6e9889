/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The output of exporters: the output equals the input, compressed or not, and errors are reported.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include "tools/export/output_stream.h"

#define PIECE_BYTES_MAX 100000u /* more than can be had room for at once */
#define BYTES (7 * STREAM_BYTES + 12345) /* some buffers, and a part of one */

/* Bytes that don't repeat themselves. */
static unsigned char *make_bytes(void)
{
	unsigned char *bytes = malloc(BYTES);
	uint64_t state = 1;

	assert_non_null(bytes);
	for (size_t i = 0; i < BYTES; i++) {
		state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
		bytes[i] = (unsigned char)(state >> 56);
	}
	return bytes;
}

/* In pieces of all lengths. Returns what closing returned. */
static int pour(FILE *file, bool is_compressed, const unsigned char *bytes, size_t n_bytes)
{
	struct output_stream output;
	size_t n = 1;

	torsh_stream_open(&output, file, is_compressed);
	for (size_t at = 0; at < n_bytes; at += n, n = n * 3 % PIECE_BYTES_MAX + 1) {
		n = n < n_bytes - at ? n : n_bytes - at;
		torsh_stream_put(&output, bytes + at, n);
	}
	return torsh_stream_close(&output);
}

static void all_bytes_come_out_in_their_order(void **state)
{
	static const size_t lengths[] = {
		0,    1, STREAM_BYTES_FIRST, STREAM_BYTES_FIRST + 1, STREAM_BYTES, STREAM_BYTES + 1,
		BYTES};
	unsigned char *bytes = make_bytes();

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		char *written = NULL;
		size_t n = 0;
		FILE *file = open_memstream(&written, &n);

		assert_int_equal(pour(file, false, bytes, lengths[i]), 0);
		assert_int_equal(fclose(file), 0);
		assert_int_equal(n, lengths[i]);
		assert_memory_equal(written, bytes, n);
		free(written);
	}
	free(bytes);
}

static void compressed_bytes_are_the_same_when_they_are_read(void **state)
{
	unsigned char *bytes = make_bytes(), *read = malloc(BYTES + 1);
	char path[] = "/tmp/torsh-sink-XXXXXX";
	int fd = mkstemp(path);
	FILE *file = fdopen(fd, "wb");
	gzFile packed;

	(void)state;
	assert_non_null(file);
	assert_non_null(read);
	assert_int_equal(pour(file, true, bytes, BYTES), 0);
	assert_int_equal(fclose(file), 0);
	packed = gzopen(path, "rb");
	assert_non_null(packed);
	assert_int_equal(gzread(packed, read, BYTES + 1), BYTES);
	assert_int_equal(gzclose(packed), Z_OK);
	assert_memory_equal(read, bytes, BYTES);
	assert_int_equal(unlink(path), 0);
	free(read);
	free(bytes);
}

static void a_full_disk_is_reported_at_the_end(void **state)
{
	unsigned char *bytes = make_bytes();
	FILE *file = fopen("/dev/full", "wb");

	(void)state;
	assert_non_null(file);
	assert_int_equal(pour(file, false, bytes, BYTES), -ENOSPC);
	fclose(file);
	file = fopen("/dev/full", "wb");
	assert_non_null(file);
	assert_int_equal(pour(file, true, bytes, BYTES), -ENOSPC);
	fclose(file);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_bytes_come_out_in_their_order),
		cmocka_unit_test(compressed_bytes_are_the_same_when_they_are_read),
		cmocka_unit_test(a_full_disk_is_reported_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
