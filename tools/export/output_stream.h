/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The output stream of timeline exporters: a large buffer, which another thread writes to the file
 * when it is full, compressed if requested. The first error is stored and returned by
 * torsh_stream_close.
 */
#ifndef TORSH_EXPORT_OUTPUT_STREAM_H
#define TORSH_EXPORT_OUTPUT_STREAM_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tools/base/json_writer.h"
#include "tools/export/output_stream_writer.h"

struct output_stream {
	char *buffer;
	size_t n, capacity;
	struct stream_writer *writer;
};

#define STREAM_RESERVE_MAX (1u << 16) /* maximum reservation in bytes */
/* size of the first buffer: enough for a short run */
#define STREAM_BYTES_FIRST STREAM_RESERVE_MAX
#define STREAM_BYTES (1u << 20) /* size of later buffers */

/* Begin writing to a file, which stays the caller's; torsh_stream_close frees the stream. */
void torsh_stream_open(struct output_stream *output, FILE *file, bool is_compressed);

/* Write the rest and free the stream. Returns 0 or the first -errno. */
int torsh_stream_close(struct output_stream *output);

/* Pass the buffer on, and continue in another one. */
void torsh_stream_flush(struct output_stream *output);

/*
 * Returns room for n bytes, at most STREAM_RESERVE_MAX; the caller adds to output->n what it
 * writes there.
 */
static inline char *torsh_stream_reserve(struct output_stream *output, size_t n)
{
	assert(n <= STREAM_RESERVE_MAX);
	if (output->n + n > output->capacity)
		torsh_stream_flush(output);
	return output->buffer + output->n;
}

/* Append any number of bytes. */
void torsh_stream_put(struct output_stream *output, const void *bytes, size_t n);

/* Append a string. */
static inline void torsh_stream_text(struct output_stream *output, const char *text)
{
	torsh_stream_put(output, text, strlen(text));
}

/* Append formatted text of any length. */
__attribute__((format(printf, 2, 3))) void torsh_stream_print(struct output_stream *output,
							      const char *format, ...);

/*
 * Write JSON into the stream's buffer; nothing else may write there before
 * torsh_stream_end_json.
 */
void torsh_stream_begin_json(struct output_stream *output, struct json_writer *json);

/* Add what the JSON writer has put into the buffer. */
void torsh_stream_end_json(struct output_stream *output, const struct json_writer *json);

#endif
