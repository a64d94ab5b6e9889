/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/output_stream.h"

#include <stdarg.h>
#include <stdlib.h>

#include "tools/base/die.h"

void torsh_sink_open(struct sink *sink, FILE *file, bool is_compressed)
{
	sink->n = 0;
	sink->n_room = SINK_BYTES_FIRST;
	sink->writer = torsh_sink_writer_create(file, is_compressed, SINK_BYTES_FIRST, SINK_BYTES,
						&sink->buffer);
}

void torsh_sink_flush(struct sink *sink)
{
	sink->buffer = torsh_sink_writer_take(sink->writer, sink->n, &sink->n_room);
	sink->n = 0;
}

int torsh_sink_close(struct sink *sink)
{
	return torsh_sink_writer_end(sink->writer, sink->n);
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
