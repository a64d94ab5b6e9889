/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Passes over JSON that is plain and lies in memory as a whole: without escapes in texts and
 * exponents in numbers. json_reader.h reads the rest. Each function takes where something begins
 * and where memory ends, and returns what follows, or NULL: it is not there, or not so.
 */
#ifndef TORSH_BASE_JSON_PLAIN_H
#define TORSH_BASE_JSON_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define JSON_PLAIN_DEPTH 63u
#define JSON_PLAIN_WORD 64 /* bytes that have to be there behind a number or a word */

static inline bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static inline bool is_of_number(char c)
{
	return (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E' ||
	       (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static inline const char *pass_spaces(const char *at, const char *end)
{
	while (at < end && is_space(*at))
		at++;
	return at;
}

/* Returns a word whose lowest byte with a bit is that of the first byte in 8 with this value. */
static inline uint64_t find_byte(uint64_t eight, uint64_t value)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t is_zero = eight ^ ones * value;

	return (is_zero - ones) & ~is_zero & ones << 7;
}

/* Returns what follows a text, which begins at a quote; NULL: no end is there, or an escape. */
static inline const char *pass_text(const char *at, const char *end)
{
	at++;
	while (end - at >= 8) {
		uint64_t eight, found;

		memcpy(&eight, at, 8); /* little endian, as both machines are */
		found = find_byte(eight, '"') | find_byte(eight, '\\');
		if (found) {
			at += __builtin_ctzll(found) / 8;
			return *at == '"' ? at + 1 : NULL;
		}
		at += 8;
	}
	for (; at < end && *at != '"'; at++) {
		if (*at == '\\')
			return NULL;
	}
	return at < end ? at + 1 : NULL;
}

static inline const char *pass_digits(const char *at, const char *end)
{
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at;
}

/* Returns what follows a number without exponent, or true, false or null; NULL: something else. */
static inline const char *pass_word(const char *at, const char *end)
{
	const char *start = at;

	if (end - at < (ptrdiff_t)JSON_PLAIN_WORD)
		return NULL;
	if (*at == 't' || *at == 'n')
		at += !memcmp(at, "true", 4) || !memcmp(at, "null", 4) ? 4 : 0;
	else if (*at == 'f')
		at += !memcmp(at, "false", 5) ? 5 : 0;
	else
		at = pass_digits(at + (*at == '-'), end);
	if (at < end && *at == '.')
		at = pass_digits(at + 1, end);
	return at == start || at >= end || at[-1] < '0' || is_of_number(*at) ? NULL : at;
}

/* Returns what follows a name and its colon; NULL: not there. */
static inline const char *pass_name(const char *at, const char *end)
{
	at = pass_spaces(at, end);
	at = at < end && *at == '"' ? pass_text(at, end) : NULL;
	if (!at)
		return NULL;
	at = pass_spaces(at, end);
	return at < end && *at == ':' ? at + 1 : NULL;
}

/* The objects and arrays that are open: a bit each, 1 for an object. */
struct nesting {
	uint64_t is_object;
	unsigned depth;
};

/*
 * Returns what follows a value; of an object or array that isn't empty, what is before its first
 * value, and open is deeper. NULL: not there.
 */
static inline const char *pass_value(const char *at, const char *end, struct nesting *open)
{
	bool is_object = *at == '{';

	if (!is_object && *at != '[')
		return *at == '"' ? pass_text(at, end) : pass_word(at, end);
	if (open->depth == JSON_PLAIN_DEPTH)
		return NULL;
	at = pass_spaces(at + 1, end);
	if (at == end)
		return NULL;
	if (*at == (is_object ? '}' : ']'))
		return at + 1;
	open->is_object = open->is_object << 1 | is_object;
	open->depth++;
	return at;
}

/* Returns what follows the value that begins there; NULL: not all of it is there, or plain. */
static inline const char *pass_whole(const char *at, const char *end)
{
	struct nesting open = {0};
	unsigned depth = 0;

	for (;;) {
		at = pass_value(at, end, &open);
		if (!at)
			return NULL;
		if (open.depth <= depth) {
			for (; open.depth; open.depth--, open.is_object >>= 1) {
				at = pass_spaces(at, end);
				if (at == end || *at == ',')
					break;
				if (*at != (open.is_object & 1 ? '}' : ']'))
					return NULL;
				at++;
			}
			if (!open.depth)
				return at;
			if (at++ == end)
				return NULL;
		}
		depth = open.depth;
		if (open.is_object & 1 && !(at = pass_name(at, end)))
			return NULL;
		at = pass_spaces(at, end);
		if (at == end)
			return NULL;
	}
}

#endif
