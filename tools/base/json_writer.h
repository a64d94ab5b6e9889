/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The one emitter of JSON: it streams into a buffer in front of a file, of an exporter's stream or
 * of memory, and holds no tree. Each append has its room before it writes.
 *
 *	struct json_writer json;
 *
 *	torsh_json_open(&json, stdout);
 *	torsh_json_begin_report(&json);
 *	torsh_json_put_u64(&json, "pid", pid);
 *	torsh_json_begin_lines(&json, "sites");
 *	torsh_json_begin_object(&json, NULL);
 *	torsh_json_put_text(&json, "name", name);
 *	torsh_json_end_object(&json);
 *	torsh_json_end_array(&json);
 *	torsh_json_end_object(&json);
 *	torsh_json_close(&json);
 *
 * A value in an object has a name, a value in an array has none (NULL). Names are copied as they
 * are: a literal, or torsh_json_put_name for a name that comes from elsewhere. 64-bit numbers keep
 * all their digits. Each bad byte of UTF-8 becomes U+FFFD. Values in the wrong place and nesting
 * that does not match end in an assertion. A writer belongs to one thread.
 */
#ifndef TORSH_BASE_JSON_WRITER_H
#define TORSH_BASE_JSON_WRITER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tools/base/digits.h"

#define JSON_DEPTH_MAX 32u
#define JSON_ROOM_MAX 4096u /* maximum size of one append: no buffer is smaller */
#define JSON_MARK_MAX 3u

/* What stands between two pieces. */
struct json_mark {
	char text[JSON_MARK_MAX];
	uint8_t n;
};

/* Marks are copied as a whole, and what follows them overwrites their n. */
#define JSON_PUNCTUATION (2 * sizeof(struct json_mark) + 2) /* around a name, with its quotes */

/* How the members of an object or the items of an array are laid out. */
struct json_layout {
	struct json_mark first, between, last; /* before the first, between two, after the last */
	struct json_mark colon;
};

/* A layout of four literals, each of at most JSON_MARK_MAX bytes. */
/* clang-format off */
#define JSON_LAYOUT(start, separator, end, colon) \
	{{start, sizeof(start) - 1}, {separator, sizeof(separator) - 1}, \
	 {end, sizeof(end) - 1}, {colon, sizeof(colon) - 1}}
/* clang-format on */

/* All in one line; each member, or each item, on a line of its own. */
extern const struct json_layout torsh_json_compact, torsh_json_member_lines, torsh_json_item_lines;

struct json_level {
	const struct json_layout *layout;
	struct json_mark separator; /* before the next value */
	bool is_object;
	bool takes_name; /* the next value has one: in an object, but after torsh_json_put_name */
};

struct json_writer {
	char *start, *at, *end; /* of the buffer */
	struct json_level *level; /* the innermost */
	bool has_name; /* torsh_json_put_name was called for the next value */
	bool escapes_controls; /* also what a terminal obeys */
	bool ends_lines; /* a line feed follows each outermost value */
	/* Make room for n bytes at json->at, and keep or write out what is before it. */
	void (*make_room)(struct json_writer *json, size_t n);
	void *sink; /* make_room's own */
	int error; /* the first errno of writing to a file */
	struct json_level levels[JSON_DEPTH_MAX];
};

/* ---- begin and end --------------------------------------------------------------------------- */

/*
 * Write to a file, which stays the caller's. Nothing is in the file before torsh_json_flush or
 * torsh_json_close. What a terminal would obey is escaped: the text loses nothing.
 */
void torsh_json_open(struct json_writer *json, FILE *file);

/*
 * Write out what is in the buffer, for a reader that waits or before others write to the file. The
 * first error is kept, and nothing is written after it.
 */
void torsh_json_flush(struct json_writer *json);

/* Flush and free. Exits with a sentence when writing failed. */
void torsh_json_close(struct json_writer *json);

/* Write to memory. No line feed follows the outermost value. */
void torsh_json_open_memory(struct json_writer *json);

/* The same for members only, as torsh_json_put_members takes them: no object has to be begun. */
void torsh_json_open_members(struct json_writer *json);

/* Returns the text; the caller frees it. */
char *torsh_json_close_memory(struct json_writer *json);

/*
 * Write through a buffer of the caller's, of at least JSON_ROOM_MAX bytes; make_room sets start, at
 * and end. When all has ended, at is the end of what was not written out; there is nothing to free.
 */
void torsh_json_open_buffer(struct json_writer *json, char *buffer, size_t capacity,
			    void (*make_room)(struct json_writer *json, size_t n), void *sink);

/* ---- objects and arrays ---------------------------------------------------------------------- */

/* Begin the outermost object of a report: a member on each line. */
void torsh_json_begin_report(struct json_writer *json);

/* Begin an object in one line. */
void torsh_json_begin_object(struct json_writer *json, const char *name);

/* End the innermost object. */
void torsh_json_end_object(struct json_writer *json);

/* Begin an array in one line. */
void torsh_json_begin_array(struct json_writer *json, const char *name);

/* Begin an array with an item on each line. */
void torsh_json_begin_lines(struct json_writer *json, const char *name);

/* End the innermost array. */
void torsh_json_end_array(struct json_writer *json);

/* An object or an array with a layout of the caller's, which outlives it. */
void torsh_json_begin_with(struct json_writer *json, const char *name, bool is_object,
			   const struct json_layout *layout);

/* Lay out what follows in the innermost object or array in this way. */
void torsh_json_set_layout(struct json_writer *json, const struct json_layout *layout);

/* ---- values ---------------------------------------------------------------------------------- */

/* Escape the name of the next value, which is put with the name NULL. */
void torsh_json_put_name(struct json_writer *json, const char *name);

/* Put a signed number. */
void torsh_json_put_i64(struct json_writer *json, const char *name, int64_t number);

/* Put a number as a text, "0x7f". */
void torsh_json_put_hex(struct json_writer *json, const char *name, uint64_t number);

/*
 * With as many digits as give the same number again to within one part in 2^52, as cJSON does; null
 * where it is not finite.
 */
void torsh_json_put_double(struct json_writer *json, const char *name, double number);
/* With n_digits significant digits. */
void torsh_json_put_rounded(struct json_writer *json, const char *name, double number,
			    int n_digits);

/* NULL becomes null. */
void torsh_json_put_text(struct json_writer *json, const char *name, const char *text);
/* The first n bytes of a text, or fewer where it ends before. */
void torsh_json_put_text_n(struct json_writer *json, const char *name, const char *text, size_t n);
/* printf as a text. */
void torsh_json_put_format(struct json_writer *json, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* An array of three numbers: of a grid or a block of threads. */
void torsh_json_put_three(struct json_writer *json, const char *name, uint64_t x, uint64_t y,
			  uint64_t z);

/* Begin a text of several pieces. */
void torsh_json_begin_text(struct json_writer *json, const char *name);

/* Escape and append a piece of whole characters. */
void torsh_json_add_text(struct json_writer *json, const char *text);

/* Append the first n bytes of a piece, or fewer where it ends before. */
void torsh_json_add_text_n(struct json_writer *json, const char *text, size_t n);

/* End a text of several pieces. */
void torsh_json_end_text(struct json_writer *json);

/* The text as the inside of a JSON string, for torsh_json_put_escaped; the caller frees it. */
char *torsh_json_escape(const char *text);

/* ---- inline: numbers, and what is JSON already ----------------------------------------------- */

/* Append any number of bytes, in as many buffers as they take: for this header. */
void torsh_json_append_long(struct json_writer *json, const char *bytes, size_t n);

/* Make room for n bytes, at most JSON_ROOM_MAX: for this header. */
void torsh_json_grow(struct json_writer *json, size_t n);

/* n bytes of room at json->at, at most JSON_ROOM_MAX: checked before anything is written there. */
static inline char *torsh_json_room(struct json_writer *json, size_t n)
{
	if ((size_t)(json->end - json->at) < n)
		torsh_json_grow(json, n);
	return json->at;
}

/* Append bytes that are JSON already, of any number. */
static inline void torsh_json_append(struct json_writer *json, const char *bytes, size_t n)
{
	if ((size_t)(json->end - json->at) < n) {
		torsh_json_append_long(json, bytes, n);
		return;
	}
	memcpy(json->at, bytes, n);
	json->at += n;
}

/* Begin a value: the separator and its name. Returns where it goes on, with n bytes of room. */
static inline char *torsh_json_begin_value(struct json_writer *json, const char *name, size_t n)
{
	struct json_level *level = json->level;
	size_t n_name = name ? strlen(name) : 0;
	char *at = torsh_json_room(json, n_name + n + JSON_PUNCTUATION);

	assert(level->takes_name == !!name);
	if (!name && json->has_name) {
		json->has_name = false;
		level->takes_name = true;
		return at;
	}
	memcpy(at, &level->separator, sizeof(level->separator));
	at += level->separator.n;
	level->separator = level->layout->between;
	if (!name)
		return at;
	*at++ = '"';
	memcpy(at, name, n_name);
	at += n_name;
	*at++ = '"';
	memcpy(at, &level->layout->colon, sizeof(level->layout->colon));
	return at + level->layout->colon.n;
}

/* Put an unsigned number. */
static inline void torsh_json_put_u64(struct json_writer *json, const char *name, uint64_t number)
{
	json->at = torsh_digits(torsh_json_begin_value(json, name, DIGITS_MAX), number);
}

/* The number with a minus before it: -0, too. */
static inline void torsh_json_put_negative(struct json_writer *json, const char *name,
					   uint64_t number)
{
	char *at = torsh_json_begin_value(json, name, DIGITS_MAX + 1);

	*at++ = '-';
	json->at = torsh_digits(at, number);
}

/* A time in ns as microseconds with three decimals. */
static inline void torsh_json_put_us(struct json_writer *json, const char *name, uint64_t ns)
{
	json->at = torsh_digits_us(torsh_json_begin_value(json, name, DIGITS_US_MAX), ns);
}

/* Put null. */
static inline void torsh_json_put_null(struct json_writer *json, const char *name)
{
	char *at = torsh_json_begin_value(json, name, 4);

	memcpy(at, "null", 4);
	json->at = at + 4;
}

/* The number, or null where it is not known. */
static inline void torsh_json_put_known(struct json_writer *json, const char *name, bool is_known,
					uint64_t number)
{
	if (is_known)
		torsh_json_put_u64(json, name, number);
	else
		torsh_json_put_null(json, name);
}

/* Put true or false. */
static inline void torsh_json_put_bool(struct json_writer *json, const char *name, bool is_true)
{
	char *at = torsh_json_begin_value(json, name, 5);

	memcpy(at, is_true ? "true" : "false", 5);
	json->at = at + (is_true ? 4 : 5);
}

/* n bytes of text that torsh_json_escape has escaped, or that need it not. */
static inline void torsh_json_put_escaped_n(struct json_writer *json, const char *name,
					    const char *text, size_t n)
{
	char *at = torsh_json_begin_value(json, name, 1);

	*at++ = '"';
	json->at = at;
	torsh_json_append(json, text, n);
	*torsh_json_room(json, 1) = '"';
	json->at++;
}

/* The same of a whole text. */
static inline void torsh_json_put_escaped(struct json_writer *json, const char *name,
					  const char *text)
{
	torsh_json_put_escaped_n(json, name, text, strlen(text));
}

/* One value that is JSON already. */
static inline void torsh_json_put_raw(struct json_writer *json, const char *name, const char *text)
{
	json->at = torsh_json_begin_value(json, name, 0);
	torsh_json_append(json, text, strlen(text));
}

/* Members that torsh_json_open_members made; "" is none. */
static inline void torsh_json_put_members(struct json_writer *json, const char *members)
{
	struct json_level *level = json->level;

	assert(level->is_object && !json->has_name);
	if (!*members)
		return;
	torsh_json_append(json, level->separator.text, level->separator.n);
	level->separator = level->layout->between;
	torsh_json_append(json, members, strlen(members));
}

#endif
