/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/output_stream.h"

#include <stdarg.h>
#include <stdlib.h>

#include "tools/base/die.h"

void torsh_stream_open(struct output_stream *output, FILE *file, bool is_compressed)
{
	output->n = 0;
	output->capacity = STREAM_BYTES_FIRST;
	output->writer = torsh_stream_writer_create(file, is_compressed, STREAM_BYTES_FIRST,
						    STREAM_BYTES, &output->buffer);
}

void torsh_stream_flush(struct output_stream *output)
{
	output->buffer = torsh_stream_writer_take(output->writer, output->n, &output->capacity);
	output->n = 0;
}

int torsh_stream_close(struct output_stream *output)
{
	return torsh_stream_writer_end(output->writer, output->n);
}

void torsh_stream_put(struct output_stream *output, const void *bytes, size_t n)
{
	while (n) {
		size_t n_now = n < STREAM_RESERVE_MAX ? n : STREAM_RESERVE_MAX;

		memcpy(torsh_stream_reserve(output, n_now), bytes, n_now);
		output->n += n_now;
		bytes = (const char *)bytes + n_now;
		n -= n_now;
	}
}

void torsh_stream_print(struct output_stream *output, const char *format, ...)
{
	char *text;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		torsh_die("out of memory");
	va_end(arguments);
	torsh_stream_text(output, text);
	free(text);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void use_buffer(struct json_writer *json, const struct output_stream *output)
{
	json->start = output->buffer;
	json->at = output->buffer + output->n;
	json->end = output->buffer + output->capacity;
}

static void make_room(struct json_writer *json, size_t n)
{
	struct output_stream *output = json->sink;

	(void)n; /* make room for: at most JSON_ROOM_MAX, which every buffer has */
	torsh_stream_end_json(output, json);
	torsh_stream_flush(output);
	use_buffer(json, output);
}

void torsh_stream_begin_json(struct output_stream *output, struct json_writer *json)
{
	torsh_json_open_buffer(json, output->buffer, output->capacity, make_room, output);
	use_buffer(json, output);
}

void torsh_stream_end_json(struct output_stream *output, const struct json_writer *json)
{
	output->n = (size_t)(json->at - json->start);
}
