/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/export/sink.h. */
#include "tools/export/sink.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <zlib.h>

#include "tools/die.h"

#define GZIP_WINDOW (15 + 16) /* zlib's way of asking for a gzip header */
#define GZIP_MEMORY 9
#define PACKED_BYTES (1u << 18)

void torsh_sink_open(struct sink *sink, FILE *file, bool is_compressed)
{
	*sink = (struct sink){.file = file, .buffer = torsh_need(malloc(SINK_BYTES))};
	if (!is_compressed)
		return;
	sink->deflate = torsh_need(calloc(1, sizeof(z_stream)));
	/* The fastest: a trace repeats itself so much that more work gains little. */
	if (deflateInit2(sink->deflate, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		torsh_die("out of memory");
}

static void write_file(struct sink *sink, const void *bytes, size_t n)
{
	if (!sink->error && fwrite(bytes, 1, n, sink->file) != n)
		sink->error = errno ? -errno : -EIO;
}

static void deflate_buffer(struct sink *sink, int how)
{
	z_stream *stream = sink->deflate;
	unsigned char *packed = torsh_need(malloc(PACKED_BYTES));

	stream->next_in = (Bytef *)sink->buffer;
	stream->avail_in = (uInt)sink->n;
	do {
		stream->next_out = packed;
		stream->avail_out = PACKED_BYTES;
		deflate(stream, how);
		write_file(sink, packed, PACKED_BYTES - stream->avail_out);
	} while (!stream->avail_out);
	free(packed);
}

void torsh_sink_flush(struct sink *sink)
{
	if (sink->deflate)
		deflate_buffer(sink, Z_NO_FLUSH);
	else
		write_file(sink, sink->buffer, sink->n);
	sink->n = 0;
}

int torsh_sink_close(struct sink *sink)
{
	if (sink->deflate) {
		deflate_buffer(sink, Z_FINISH);
		deflateEnd(sink->deflate);
		free(sink->deflate);
	} else {
		torsh_sink_flush(sink);
	}
	free(sink->buffer);
	return sink->error;
}

void torsh_sink_put(struct sink *sink, const void *bytes, size_t n)
{
	while (n) {
		size_t n_now = n < SINK_ROOM_MAX ? n : SINK_ROOM_MAX;

		memcpy(torsh_sink_room(sink, n_now), bytes, n_now);
		sink->n += n_now;
		bytes = (const char *)bytes + n_now;
		n -= n_now;
	}
}

void torsh_sink_print(struct sink *sink, const char *format, ...)
{
	char *text;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		torsh_die("out of memory");
	va_end(arguments);
	torsh_sink_text(sink, text);
	free(text);
}

char *torsh_digits(char *at, uint64_t number)
{
	char digits[20];
	size_t n = 0;

	do
		digits[n++] = (char)('0' + number % 10);
	while (number /= 10);
	while (n)
		*at++ = digits[--n];
	return at;
}

char *torsh_digits_us(char *at, uint64_t ns)
{
	uint64_t rest = ns % 1000;

	at = torsh_digits(at, ns / 1000);
	*at++ = '.';
	*at++ = (char)('0' + rest / 100);
	*at++ = (char)('0' + rest / 10 % 10);
	*at++ = (char)('0' + rest % 10);
	return at;
}
