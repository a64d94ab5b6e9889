/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reads JSON of any size as a stream: the caller pulls values one by one, and there is no tree. One
 * window of the input is in memory, as large as the longest text in it. Nothing in the input is
 * trusted. The first fault is kept as a sentence, and from then on every function returns false.
 *
 *	bool is_open = false;
 *
 *	if (torsh_json_enter(&json, JSON_OBJECT))
 *		while (torsh_json_member(&json, &is_open, &name))
 *			torsh_json_skip(&json);
 *
 * Each member and each item has to be read or skipped. NaN and Infinity are numbers, as Python
 * writes them.
 */
#ifndef TORSH_BASE_JSON_READER_H
#define TORSH_BASE_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define JSON_READER_DEPTH 64u
#define JSON_READER_TEXT_MAX ((size_t)64 << 20)

enum json_value { JSON_NONE, JSON_OBJECT, JSON_ARRAY, JSON_TEXT, JSON_NUMBER, JSON_LITERAL };

/* Not terminated; valid until the reader is used again. */
struct json_slice {
	const char *text;
	size_t n;
};

struct json_reader {
	size_t (*fill)(void *source, char *bytes, size_t n); /* returns how many; 0: the end */
	void *source;
	char *bytes;
	size_t at, n, room; /* of bytes */
	uint64_t before; /* bytes of the input before the window */
	char *unescaped;
	size_t unescaped_room;
	const char *fault; /* NULL: none */
	uint64_t fault_at; /* byte of the input */
};

/* Begin to read; torsh_json_reader_free ends it. */
void torsh_json_reader_start(struct json_reader *json, size_t (*fill)(void *, char *, size_t),
			     void *source);

/* Free what it holds. */
void torsh_json_reader_free(struct json_reader *json);

/* Returns the kind of the next value, which is not consumed; JSON_NONE: there is none. */
enum json_value torsh_json_peek(struct json_reader *json);

/* Begin to read an object or an array. Returns false with a fault if the next value is not one. */
bool torsh_json_enter(struct json_reader *json, enum json_value kind);

/*
 * Go to the next member of an object. *is_open is false at first, and the caller's for as long.
 * Returns false at the object's end, which is consumed, or at a fault.
 */
bool torsh_json_member(struct json_reader *json, bool *is_open, struct json_slice *name);

/* Likewise, to the next item of an array. */
bool torsh_json_item(struct json_reader *json, bool *is_open);

/* Read a text. Returns false with a fault if it is none. */
bool torsh_json_text(struct json_reader *json, struct json_slice *text);

/* Read a number; *is_whole: it is written without fraction and exponent. */
bool torsh_json_number(struct json_reader *json, double *value, bool *is_whole);

/* Read any value, and forget it. */
bool torsh_json_skip(struct json_reader *json);

/*
 * Look at the next value as it is written, without consuming it. Returns false where it isn't whole
 * in the window, has escapes or exponents, or is none: then it has to be read or skipped.
 */
bool torsh_json_look(struct json_reader *json, struct json_slice *value);

/* Consume what torsh_json_look gave. */
void torsh_json_pass(struct json_reader *json, struct json_slice value);

/* Returns whether nothing but spaces follows; else with a fault. */
bool torsh_json_end(struct json_reader *json);

/* Returns whether a slice is this text, a literal. */
#define torsh_json_is(slice, literal) \
	((slice).n == sizeof(literal) - 1 && !memcmp((slice).text, literal, sizeof(literal) - 1))

#endif
