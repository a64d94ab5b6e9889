/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/json_writer.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/base/utf8.h"

#define FILE_BYTES (1u << 16)
#define MEMORY_BYTES 64u /* initial size: most texts are short */
#define END_BYTES_MAX (sizeof(struct json_mark) + 2) /* the closing brace and a line feed */
#define ESCAPE_BYTES_MAX 6 /* \u0000 */
#define DOUBLE_BYTES_MAX 32 /* of %.17g, rounded up */
#define EXACT_BELOW 1e15 /* an integer below this has at most DBL_DIG digits */
#define DIGITS_EXACT 17 /* enough digits to read the same double again */

const struct json_layout torsh_json_compact = JSON_LAYOUT("", ",", "", ":");
const struct json_layout torsh_json_member_lines = JSON_LAYOUT("", ",\n", "", ":");
const struct json_layout torsh_json_item_lines = JSON_LAYOUT("\n", ",\n", "", ":");

/* ---- room ------------------------------------------------------------------------------------ */

void torsh_json_grow(struct json_writer *json, size_t n)
{
	assert(n <= JSON_ROOM_MAX);
	json->make_room(json, n);
	assert((size_t)(json->end - json->at) >= n);
}

void torsh_json_append_long(struct json_writer *json, const char *bytes, size_t n)
{
	while (n) {
		size_t room = (size_t)(json->end - json->at), n_now = n < room ? n : room;

		memcpy(json->at, bytes, n_now);
		json->at += n_now;
		bytes += n_now;
		n -= n_now;
		if (n)
			torsh_json_grow(json, 1);
	}
}

void torsh_json_open_buffer(struct json_writer *json, char *buffer, size_t capacity,
			    void (*make_room)(struct json_writer *json, size_t n), void *sink)
{
	json->start = json->at = buffer;
	json->end = buffer + capacity;
	json->level = json->levels;
	json->has_name = json->escapes_controls = false;
	json->ends_lines = true;
	json->make_room = make_room;
	json->sink = sink;
	json->error = 0;
	json->levels[0] = (struct json_level){.layout = &torsh_json_compact};
}

/* ---- a file ---------------------------------------------------------------------------------- */

static void write_file(struct json_writer *json, size_t n_room)
{
	size_t n = (size_t)(json->at - json->start);

	(void)n_room; /* make room for: less than an empty buffer */
	errno = 0;
	if (!json->error && fwrite(json->start, 1, n, json->sink) != n)
		json->error = errno ? errno : EIO;
	json->at = json->start;
}

void torsh_json_open(struct json_writer *json, FILE *file)
{
	torsh_json_open_buffer(json, torsh_need(malloc(FILE_BYTES)), FILE_BYTES, write_file, file);
	json->escapes_controls = true;
}

void torsh_json_flush(struct json_writer *json)
{
	FILE *file = json->sink;

	write_file(json, 0);
	if (!json->error && (fflush(file) || ferror(file)))
		json->error = errno ? errno : EIO;
}

void torsh_json_close(struct json_writer *json)
{
	assert(json->level == json->levels);
	torsh_json_flush(json);
	free(json->start);
	if (json->error)
		torsh_die("can't write the report: %s", strerror(json->error));
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void grow_memory(struct json_writer *json, size_t n_room)
{
	size_t n = (size_t)(json->at - json->start), capacity = (size_t)(json->end - json->start);

	capacity = capacity * 2 + n_room;
	json->start = torsh_need(realloc(json->start, capacity));
	json->at = json->start + n;
	json->end = json->start + capacity;
}

void torsh_json_open_memory(struct json_writer *json)
{
	torsh_json_open_buffer(json, torsh_need(malloc(MEMORY_BYTES)), MEMORY_BYTES, grow_memory,
			       NULL);
	json->ends_lines = false;
}

void torsh_json_open_members(struct json_writer *json)
{
	torsh_json_open_memory(json);
	json->levels[0].is_object = json->levels[0].takes_name = true;
}

char *torsh_json_close_memory(struct json_writer *json)
{
	assert(json->level == json->levels);
	*torsh_json_room(json, 1) = '\0';
	return torsh_need(realloc(json->start, (size_t)(json->at - json->start) + 1));
}

/* ---- objects and arrays ---------------------------------------------------------------------- */

static void append_mark(struct json_writer *json, struct json_mark mark)
{
	torsh_json_append(json, mark.text, mark.n);
}

void torsh_json_begin_with(struct json_writer *json, const char *name, bool is_object,
			   const struct json_layout *layout)
{
	char *at = torsh_json_begin_value(json, name, 1);

	*at++ = is_object ? '{' : '[';
	json->at = at;
	assert(json->level + 1 < json->levels + JSON_DEPTH_MAX);
	*++json->level = (struct json_level){.layout = layout,
					     .separator = layout->first,
					     .is_object = is_object,
					     .takes_name = is_object};
}

static void end(struct json_writer *json, bool is_object)
{
	const struct json_mark *last = &json->level->layout->last;
	char *at;

	assert(json->level > json->levels && json->level->is_object == is_object);
	assert(!json->has_name);
	at = torsh_json_room(json, END_BYTES_MAX);
	memcpy(at, last, sizeof(*last));
	at += last->n;
	*at++ = is_object ? '}' : ']';
	if (--json->level == json->levels && json->ends_lines) {
		*at++ = '\n';
		/* Line mode: the next line is a separate value. */
		json->level->separator = json->level->layout->first;
	}
	json->at = at;
}

void torsh_json_begin_report(struct json_writer *json)
{
	torsh_json_begin_with(json, NULL, true, &torsh_json_member_lines);
}

void torsh_json_begin_object(struct json_writer *json, const char *name)
{
	torsh_json_begin_with(json, name, true, &torsh_json_compact);
}

void torsh_json_end_object(struct json_writer *json)
{
	end(json, true);
}

void torsh_json_begin_array(struct json_writer *json, const char *name)
{
	torsh_json_begin_with(json, name, false, &torsh_json_compact);
}

void torsh_json_begin_lines(struct json_writer *json, const char *name)
{
	torsh_json_begin_with(json, name, false, &torsh_json_item_lines);
}

void torsh_json_end_array(struct json_writer *json)
{
	end(json, false);
}

void torsh_json_set_layout(struct json_writer *json, const struct json_layout *layout)
{
	json->level->layout = layout;
	json->level->separator = layout->between;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Returns the number of bytes at text that need no escape; ASCII only. */
static size_t count_plain(const char *text, const char *end)
{
	const char *at = text;

	while (at < end && *at >= ' ' && *at != '"' && *at != '\\' && *at != 0x7f)
		at++;
	return (size_t)(at - text);
}

/* Returns the letter that escapes the character, or 0. */
static char escape_letter(char character)
{
	static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	const char *found = character ? strchr(escaped, character) : NULL;

	return found ? letters[found - escaped] : '\0';
}

/* Append the first character of text, which has n bytes. Returns its length in bytes. */
static size_t put_character(struct json_writer *json, const char *text, size_t n)
{
	size_t n_bytes = torsh_utf8_bytes(text, n);
	uint32_t character = n_bytes ? torsh_utf8_character(text, n_bytes) : 0;
	char letter = escape_letter(*text), *at = torsh_json_room(json, ESCAPE_BYTES_MAX + 1);

	if (!n_bytes)
		json->at = mempcpy(at, "\xef\xbf\xbd", 3);
	else if (letter)
		json->at = mempcpy(at, (char[]){'\\', letter}, 2);
	else if (character < ' ' || (json->escapes_controls && torsh_utf8_is_obeyed(character)))
		json->at = at + sprintf(at, "\\u%04" PRIx32, character);
	else
		json->at = mempcpy(at, text, n_bytes);
	return n_bytes ? n_bytes : 1;
}

void torsh_json_add_text_n(struct json_writer *json, const char *text, size_t n)
{
	const char *end = text + strnlen(text, n);

	for (;;) {
		size_t n_plain = count_plain(text, end);

		torsh_json_append(json, text, n_plain);
		text += n_plain;
		if (text == end)
			return;
		text += put_character(json, text, (size_t)(end - text));
	}
}

void torsh_json_add_text(struct json_writer *json, const char *text)
{
	torsh_json_add_text_n(json, text, SIZE_MAX);
}

void torsh_json_put_three(struct json_writer *json, const char *name, uint64_t x, uint64_t y,
			  uint64_t z)
{
	torsh_json_begin_array(json, name);
	torsh_json_put_u64(json, NULL, x);
	torsh_json_put_u64(json, NULL, y);
	torsh_json_put_u64(json, NULL, z);
	torsh_json_end_array(json);
}

void torsh_json_begin_text(struct json_writer *json, const char *name)
{
	char *at = torsh_json_begin_value(json, name, 1);

	*at++ = '"';
	json->at = at;
}

void torsh_json_end_text(struct json_writer *json)
{
	torsh_json_append(json, "\"", 1);
}

void torsh_json_put_text_n(struct json_writer *json, const char *name, const char *text, size_t n)
{
	torsh_json_begin_text(json, name);
	torsh_json_add_text_n(json, text, n);
	torsh_json_end_text(json);
}

void torsh_json_put_text(struct json_writer *json, const char *name, const char *text)
{
	if (text)
		torsh_json_put_text_n(json, name, text, SIZE_MAX);
	else
		torsh_json_put_null(json, name);
}

void torsh_json_put_format(struct json_writer *json, const char *name, const char *format, ...)
{
	char *text;
	va_list arguments;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) < 0)
		torsh_die("out of memory");
	va_end(arguments);
	torsh_json_put_text(json, name, text);
	free(text);
}

char *torsh_json_escape(const char *text)
{
	struct json_writer json;

	torsh_json_open_memory(&json);
	torsh_json_add_text(&json, text);
	return torsh_json_close_memory(&json);
}

/* ---- names and values ------------------------------------------------------------------------ */

void torsh_json_put_name(struct json_writer *json, const char *name)
{
	struct json_level *level = json->level;

	assert(level->is_object && !json->has_name);
	append_mark(json, level->separator);
	level->separator = level->layout->between;
	torsh_json_append(json, "\"", 1);
	torsh_json_add_text(json, name);
	torsh_json_append(json, "\"", 1);
	append_mark(json, level->layout->colon);
	json->has_name = true;
	level->takes_name = false;
}

void torsh_json_put_i64(struct json_writer *json, const char *name, int64_t number)
{
	char *at = torsh_json_begin_value(json, name, DIGITS_MAX + 1);

	if (number < 0)
		*at++ = '-';
	json->at = torsh_digits(at, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

void torsh_json_put_hex(struct json_writer *json, const char *name, uint64_t number)
{
	char *at = torsh_json_begin_value(json, name, DIGITS_MAX + 1);

	json->at = at + sprintf(at, "\"0x%" PRIx64 "\"", number);
}

/* Returns whether %.15g prints the number as an integer with all its digits. */
static bool is_plain_integer(double number)
{
	return fabs(number) < EXACT_BELOW && number == (double)(int64_t)number &&
	       !(signbit(number) && number == 0);
}

void torsh_json_put_rounded(struct json_writer *json, const char *name, double number, int n_digits)
{
	char *at;

	assert(n_digits <= DIGITS_EXACT);
	if (!isfinite(number)) {
		torsh_json_put_null(json, name);
		return;
	}
	/* printf takes ten times as long as torsh_digits. */
	if (n_digits >= DBL_DIG && is_plain_integer(number)) {
		torsh_json_put_i64(json, name, (int64_t)number);
		return;
	}
	at = torsh_json_begin_value(json, name, DOUBLE_BYTES_MAX);
	json->at = at + sprintf(at, "%.*g", n_digits, number);
}

void torsh_json_put_double(struct json_writer *json, const char *name, double number)
{
	char digits[DOUBLE_BYTES_MAX];
	double again, larger;

	if (is_plain_integer(number)) {
		torsh_json_put_i64(json, name, (int64_t)number);
		return;
	}
	snprintf(digits, sizeof(digits), "%.*g", DBL_DIG, number);
	again = strtod(digits, NULL);
	larger = fmax(fabs(again), fabs(number));
	torsh_json_put_rounded(json, name, number,
			       fabs(again - number) <= larger * DBL_EPSILON ? DBL_DIG
									    : DIGITS_EXACT);
}
