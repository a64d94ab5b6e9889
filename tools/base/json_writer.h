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

/* The bytes between two values. */
struct json_mark {
	char text[JSON_MARK_MAX];
	uint8_t n;
};

/* Marks are copied as a whole; later output overwrites what exceeds n. */
#define JSON_PUNCTUATION (2 * sizeof(struct json_mark) + 2) /* around a name, with its quotes */

/* How the members of an object or the items of an array are laid out. */
struct json_layout {
	struct json_mark first, between, last; /* before the first, between two, after the last */
	struct json_mark colon;
};

/* clang-format off */
#define JSON_LAYOUT(start, separator, end, colon) \
	{{start, sizeof(start) - 1}, {separator, sizeof(separator) - 1}, \
	 {end, sizeof(end) - 1}, {colon, sizeof(colon) - 1}}
/* clang-format on */

/* torsh_json_compact: all in one line; the others: each member, or each item, on its own line. */
extern const struct json_layout torsh_json_compact, torsh_json_member_lines, torsh_json_item_lines;

struct json_level {
	const struct json_layout *layout;
	struct json_mark separator; /* written before the next value */
	bool is_object;
	bool takes_name; /* the next value needs a name */
};

struct json_writer {
	char *start, *at, *end; /* of the buffer */
	struct json_level *level; /* the innermost */
	bool has_name; /* torsh_json_put_name was called for the next value */
	bool escapes_controls; /* escape what a terminal acts on, too */
	bool ends_lines; /* write a line feed after each outermost value */
	/* Make room for n bytes at json->at, and store or write the bytes before it. */
	void (*make_room)(struct json_writer *json, size_t n);
	void *sink; /* owned by make_room */
	int error; /* the first errno of writing to a file */
	struct json_level levels[JSON_DEPTH_MAX];
};

/* ---- begin and end --------------------------------------------------------------------------- */

/*
 * Write to a file, which stays the caller's. Nothing is written before torsh_json_flush or
 * torsh_json_close. Characters that a terminal would act on are escaped, so that the text stays
 * readable and complete.
 */
void torsh_json_open(struct json_writer *json, FILE *file);

/*
 * Write out the buffer, for a reader that waits, or before others write to the file. The first
 * error is stored, and nothing is written after it.
 */
void torsh_json_flush(struct json_writer *json);

/* Flush and free. Exits with a sentence when writing failed. */
void torsh_json_close(struct json_writer *json);

/* Write to memory. No line feed follows the outermost value. */
void torsh_json_open_memory(struct json_writer *json);

/*
 * Like torsh_json_open_memory, for members without an object around them, which
 * torsh_json_put_members takes.
 */
void torsh_json_open_members(struct json_writer *json);

/* Returns the text; the caller frees it. */
char *torsh_json_close_memory(struct json_writer *json);

/*
 * Write through a buffer of the caller's, of at least JSON_ROOM_MAX bytes; make_room sets start,
 * at and end. At the end, `at` is the end of the bytes not yet written out; nothing needs to be
 * freed.
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

/* Begin an object or an array with the caller's layout, which must outlive it. */
void torsh_json_begin_with(struct json_writer *json, const char *name, bool is_object,
			   const struct json_layout *layout);

/* Change the layout of the rest of the innermost object or array. */
void torsh_json_set_layout(struct json_writer *json, const struct json_layout *layout);

/* ---- values ---------------------------------------------------------------------------------- */

/* Escape the name of the next value, which is then appended with name NULL. */
void torsh_json_put_name(struct json_writer *json, const char *name);

/* Put a signed number. */
void torsh_json_put_i64(struct json_writer *json, const char *name, int64_t number);

/* Put a number as a text, "0x7f". */
void torsh_json_put_hex(struct json_writer *json, const char *name, uint64_t number);

/*
 * With as many digits as cJSON prints: the number is read again to within one part in 2^52. null
 * if it is not finite.
 */
void torsh_json_put_double(struct json_writer *json, const char *name, double number);
/* With n_digits significant digits. */
void torsh_json_put_rounded(struct json_writer *json, const char *name, double number,
			    int n_digits);

/* Put a text; NULL becomes null. */
void torsh_json_put_text(struct json_writer *json, const char *name, const char *text);
/* Put the first n bytes of a text, or all of a shorter one. */
void torsh_json_put_text_n(struct json_writer *json, const char *name, const char *text, size_t n);
/* Put a text formatted as by printf. */
void torsh_json_put_format(struct json_writer *json, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Put an array of three numbers: a grid's or a block's dimensions. */
void torsh_json_put_three(struct json_writer *json, const char *name, uint64_t x, uint64_t y,
			  uint64_t z);

/* Begin a text of several pieces. */
void torsh_json_begin_text(struct json_writer *json, const char *name);

/* Escape and append a piece of whole characters. */
void torsh_json_add_text(struct json_writer *json, const char *text);

/* Append the first n bytes of a piece, or all of a shorter one. */
void torsh_json_add_text_n(struct json_writer *json, const char *text, size_t n);

/* End a text of several pieces. */
void torsh_json_end_text(struct json_writer *json);

/*
 * Returns the text escaped as the inside of a JSON string, for torsh_json_put_escaped; the caller
 * frees it.
 */
char *torsh_json_escape(const char *text);

/* ---- inline: numbers, and what is JSON already ----------------------------------------------- */

/* Append any number of bytes, through as many buffers as needed. Internal to this header. */
void torsh_json_append_long(struct json_writer *json, const char *bytes, size_t n);

/* Make room for n bytes, at most JSON_ROOM_MAX. Internal to this header. */
void torsh_json_grow(struct json_writer *json, size_t n);

/* Returns json->at with room for n bytes, at most JSON_ROOM_MAX. */
static inline char *torsh_json_room(struct json_writer *json, size_t n)
{
	if ((size_t)(json->end - json->at) < n)
		torsh_json_grow(json, n);
	return json->at;
}

/* Append any number of bytes that are already JSON. */
static inline void torsh_json_append(struct json_writer *json, const char *bytes, size_t n)
{
	if ((size_t)(json->end - json->at) < n) {
		torsh_json_append_long(json, bytes, n);
		return;
	}
	memcpy(json->at, bytes, n);
	json->at += n;
}

/* Begin a value: separator and name. Returns the position after them, with n bytes of room. */
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

/* Put a number with a minus sign, which also gives -0. */
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

/* Put the number, or null if it is unknown. */
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

/* Put n bytes of text that torsh_json_escape has escaped, or that need no escape. */
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

/* Put a whole text that is escaped already. */
static inline void torsh_json_put_escaped(struct json_writer *json, const char *name,
					  const char *text)
{
	torsh_json_put_escaped_n(json, name, text, strlen(text));
}

/* Put one value that is already JSON. */
static inline void torsh_json_put_raw(struct json_writer *json, const char *name, const char *text)
{
	json->at = torsh_json_begin_value(json, name, 0);
	torsh_json_append(json, text, strlen(text));
}

/* Put members from a writer of torsh_json_open_members; "" is none. */
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
