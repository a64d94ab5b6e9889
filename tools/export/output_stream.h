/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Where exporters of a timeline write: a large buffer before a file, which is written on another
 * thread when it is full, compressed where that is wanted. Errors are kept and told at the end.
 */
#ifndef TORSH_EXPORT_OUTPUT_STREAM_H
#define TORSH_EXPORT_OUTPUT_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tools/export/output_stream_writer.h"

struct sink {
	char *buffer;
	size_t n, n_room;
	struct sink_writer *writer;
};

#define SINK_ROOM_MAX (1u << 16) /* that can be asked for at once */
/* of the first buffer: what a short run exports fills no more */
#define SINK_BYTES_FIRST SINK_ROOM_MAX
#define SINK_BYTES (1u << 20) /* of the others */

/* The file stays the caller's. */
void torsh_sink_open(struct sink *sink, FILE *file, bool is_compressed);

/* Write all that is left. Returns 0 or -errno. */
int torsh_sink_close(struct sink *sink);

/* Hand the buffer over, and go on in another one. */
void torsh_sink_flush(struct sink *sink);

/* Room for n bytes, at most SINK_ROOM_MAX: what is written there counts with sink->n. */
static inline char *torsh_sink_room(struct sink *sink, size_t n)
{
	if (sink->n + n > sink->n_room)
		torsh_sink_flush(sink);
	return sink->buffer + sink->n;
}

/* Any number of bytes. */
void torsh_sink_put(struct sink *sink, const void *bytes, size_t n);

static inline void torsh_sink_text(struct sink *sink, const char *text)
{
	torsh_sink_put(sink, text, strlen(text));
}

__attribute__((format(printf, 2, 3))) void torsh_sink_print(struct sink *sink, const char *format,
							    ...);

/* Digits of a number; at has room for 20. Returns their end. */
char *torsh_digits(char *at, uint64_t number);

/* Microseconds with three decimals of a time in ns; at has room for 24. Returns the end. */
char *torsh_digits_us(char *at, uint64_t ns);

#endif
