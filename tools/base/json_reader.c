/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/json_reader.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/json_plain.h"

#define WINDOW_BYTES ((size_t)256 << 10)
#define NUMBER_BYTES 64u
#define EXACT_MANTISSA (UINT64_C(1) << 53)
#define EXACT_POWER 22

/* ---- the window ------------------------------------------------------------------------------ */

void torsh_json_reader_start(struct json_reader *json, size_t (*fill)(void *, char *, size_t),
			     void *source)
{
	*json = (struct json_reader){.fill = fill, .source = source};
	json->bytes = torsh_array_reserve(NULL, WINDOW_BYTES, &json->room, 1);
}

void torsh_json_reader_free(struct json_reader *json)
{
	free(json->bytes);
	free(json->unescaped);
	*json = (struct json_reader){0};
}

static bool set_fault(struct json_reader *json, const char *fault)
{
	if (!json->fault) {
		json->fault = fault;
		json->fault_at = json->before + json->at;
	}
	return false;
}

/* Read more behind what is there from json->at on. Returns false at the input's end. */
static bool read_more(struct json_reader *json)
{
	size_t kept = json->n - json->at, n;

	memmove(json->bytes, json->bytes + json->at, kept);
	json->before += json->at;
	json->at = 0;
	json->n = kept;
	if (json->room - kept < WINDOW_BYTES / 2) {
		if (kept > JSON_READER_TEXT_MAX)
			return set_fault(json, "a text of more than 64 MiB");
		json->bytes = torsh_array_reserve(json->bytes, kept + WINDOW_BYTES, &json->room, 1);
	}
	n = json->fill(json->source, json->bytes + kept, json->room - kept);
	json->n += n;
	return n > 0;
}

/* Returns the next byte that is no space, which is not consumed; 0: the end, or a fault. */
static inline char next_byte(struct json_reader *json)
{
	if (json->fault)
		return 0;
	for (;;) {
		while (json->at < json->n) {
			if (!is_space(json->bytes[json->at]))
				return json->bytes[json->at];
			json->at++;
		}
		if (!read_more(json))
			return 0;
	}
}

static bool take_byte(struct json_reader *json, char c)
{
	char found = next_byte(json);

	if (found != c)
		return set_fault(json, found ? "not JSON" : "it ends in the middle");
	json->at++;
	return true;
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* Returns how many bytes from json->at on a text takes with its quotes; 0 with a fault. */
static size_t text_length(struct json_reader *json, bool *has_escape)
{
	size_t i = 1;

	*has_escape = false;
	for (;;) {
		const char *start = json->bytes + json->at, *end;

		end = i < json->n - json->at ? memchr(start + i, '"', json->n - json->at - i)
					     : NULL;
		if (end) {
			size_t n_slashes = 0;

			while (end[-1 - (ptrdiff_t)n_slashes] == '\\')
				n_slashes++;
			i = (size_t)(end - start) + 1;
			*has_escape = *has_escape || n_slashes;
			if (n_slashes % 2 == 0)
				break;
			continue;
		}
		i = json->n - json->at;
		if (!read_more(json)) {
			set_fault(json, "it ends in the middle of a text");
			return 0;
		}
	}
	if (!*has_escape)
		*has_escape = memchr(json->bytes + json->at + 1, '\\', i - 2);
	return i;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the number of 4 hexadecimal digits, or -1. */
static long hex_number(const char *text, const char *end)
{
	long number = 0;

	for (int i = 0; i < 4; i++) {
		int digit = text + i < end ? hex_digit(text[i]) : -1;

		if (digit < 0)
			return -1;
		number = number << 4 | digit;
	}
	return number;
}

static size_t put_utf8(char *to, unsigned long code)
{
	size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
	static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = n; i-- > 1; code >>= 6)
		to[i] = (char)(0x80 | (code & 0x3f));
	to[0] = (char)(leads[n] | code);
	return n;
}

/* Decode what follows "\u", with the second half of a pair. Returns the bytes read; 0: a fault. */
static size_t unescape_code(const char *from, const char *end, char *to, size_t *n_to)
{
	long code = hex_number(from, end), low = -1;
	size_t n = 4;

	if (code < 0)
		return 0;
	if (code >= 0xd800 && code < 0xdc00 && end - from >= 10 && from[4] == '\\' &&
	    from[5] == 'u')
		low = hex_number(from + 6, end);
	if (low >= 0xdc00 && low < 0xe000) {
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
		n = 10;
	} else if (code >= 0xd800 && code < 0xe000) {
		code = 0xfffd;
	}
	*n_to += put_utf8(to + *n_to, (unsigned long)code);
	return n;
}

static bool unescape(struct json_reader *json, struct json_slice *text)
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	const char *from = text->text, *end = from + text->n;
	size_t n = 0;

	json->unescaped = torsh_array_reserve(json->unescaped, text->n, &json->unescaped_room, 1);
	while (from < end) {
		const char *name;

		if (*from != '\\') {
			json->unescaped[n++] = *from++;
			continue;
		}
		if (end - from < 2)
			return set_fault(json, "a text with a bad escape");
		name = strchr(names, from[1]);
		if (from[1] == 'u') {
			size_t length = unescape_code(from + 2, end, json->unescaped, &n);

			if (!length)
				return set_fault(json, "a text with a bad escape");
			from += 2 + length;
		} else if (name && from[1]) {
			json->unescaped[n++] = values[name - names];
			from += 2;
		} else {
			return set_fault(json, "a text with a bad escape");
		}
	}
	*text = (struct json_slice){json->unescaped, n};
	return true;
}

bool torsh_json_text(struct json_reader *json, struct json_slice *text)
{
	const char *start, *after;
	bool has_escape;
	size_t n;

	if (next_byte(json) != '"')
		return set_fault(json, "not a text");
	start = json->bytes + json->at;
	after = pass_text(start, json->bytes + json->n);
	if (after) {
		*text = (struct json_slice){start + 1, (size_t)(after - start) - 2};
		json->at += (size_t)(after - start);
		return true;
	}
	n = text_length(json, &has_escape);
	if (!n)
		return false;
	*text = (struct json_slice){json->bytes + json->at + 1, n - 2};
	if (has_escape && !unescape(json, text))
		return false;
	json->at += n;
	return true;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* Returns the bytes of the number or literal at json->at; 0 with a fault. */
static size_t word_length(struct json_reader *json)
{
	size_t i = 0;

	while (json->n - json->at < NUMBER_BYTES && read_more(json))
		;
	while (json->at + i < json->n && is_of_number(json->bytes[json->at + i])) {
		if (++i == NUMBER_BYTES) {
			set_fault(json, "a number of 64 digits");
			return 0;
		}
	}
	if (!i)
		set_fault(json, json->at == json->n ? "it ends in the middle" : "not JSON");
	return i;
}

/* Exact where mantissa and power of ten are (Clinger's fast path). Returns false for the others. */
static bool read_exactly(const char *word, size_t n, double *value, bool *is_whole)
{
	static const double powers[EXACT_POWER + 1] = {
		1e0,  1e1,  1e2,  1e3,	1e4,  1e5,  1e6,  1e7,	1e8,  1e9,  1e10, 1e11,
		1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	bool is_negative = word[0] == '-';
	size_t i = is_negative, n_digits = 0, n_fraction = 0;
	uint64_t mantissa = 0;

	for (; i < n && word[i] >= '0' && word[i] <= '9'; i++, n_digits++)
		mantissa = mantissa * 10 + (uint64_t)(word[i] - '0');
	*is_whole = i == n;
	if (!n_digits)
		return false;
	if (i < n && word[i] == '.') {
		for (i++; i < n && word[i] >= '0' && word[i] <= '9'; i++, n_fraction++)
			mantissa = mantissa * 10 + (uint64_t)(word[i] - '0');
		if (!n_fraction)
			return false;
	}
	if (i < n || n_digits + n_fraction > 19 || mantissa > EXACT_MANTISSA)
		return false;
	*value = (double)mantissa / powers[n_fraction];
	if (is_negative)
		*value = -*value;
	return true;
}

bool torsh_json_number(struct json_reader *json, double *value, bool *is_whole)
{
	char word[NUMBER_BYTES + 1], *end;
	const char *start, *after;
	size_t n;

	if (!next_byte(json))
		return set_fault(json, "it ends in the middle");
	start = json->bytes + json->at;
	after = pass_word(start, json->bytes + json->n);
	if (after && read_exactly(start, (size_t)(after - start), value, is_whole)) {
		json->at += (size_t)(after - start);
		return true;
	}
	n = word_length(json);
	if (!n)
		return false;
	if (!read_exactly(json->bytes + json->at, n, value, is_whole)) {
		memcpy(word, json->bytes + json->at, n);
		word[n] = 0;
		*value = strtod(word, &end);
		if (*end)
			return set_fault(json, "not a number");
	}
	json->at += n;
	return true;
}

/* ---- values ---------------------------------------------------------------------------------- */

enum json_value torsh_json_peek(struct json_reader *json)
{
	char c = next_byte(json);

	switch (c) {
	case 0:
		return JSON_NONE;
	case '{':
		return JSON_OBJECT;
	case '[':
		return JSON_ARRAY;
	case '"':
		return JSON_TEXT;
	case 't':
	case 'f':
	case 'n':
		return JSON_LITERAL;
	default:
		return JSON_NUMBER;
	}
}

bool torsh_json_enter(struct json_reader *json, enum json_value kind)
{
	return take_byte(json, kind == JSON_OBJECT ? '{' : '[');
}

/* Go to what follows the comma, or behind the end. */
static bool go_on(struct json_reader *json, bool *is_open, char end)
{
	char c = next_byte(json);

	if (c == end) {
		json->at++;
		return false;
	}
	if (*is_open)
		return take_byte(json, ',');
	*is_open = true;
	return !json->fault && (c || set_fault(json, "it ends in the middle"));
}

/* As torsh_json_member, of what is plain and whole in the window; else nothing is consumed. */
static inline bool is_plain_member(struct json_reader *json, bool *is_open, struct json_slice *name)
{
	const char *end = json->bytes + json->n, *at = pass_spaces(json->bytes + json->at, end),
		   *after;

	if (at < end && *is_open)
		at = *at == ',' ? pass_spaces(at + 1, end) : end;
	after = at < end && *at == '"' ? pass_text(at, end) : NULL;
	if (!after)
		return false;
	*name = (struct json_slice){at + 1, (size_t)(after - at) - 2};
	at = pass_spaces(after, end);
	if (at == end || *at != ':')
		return false;
	json->at = (size_t)(at + 1 - json->bytes);
	*is_open = true;
	return true;
}

bool torsh_json_member(struct json_reader *json, bool *is_open, struct json_slice *name)
{
	if (!json->fault && is_plain_member(json, is_open, name))
		return true;
	if (!go_on(json, is_open, '}') || !torsh_json_text(json, name))
		return false;
	/* The name stays where it is: its reader's window may move now only if it is copied. */
	if (json->at < json->n && json->bytes[json->at] == ':') {
		json->at++;
		return true;
	}
	if (name->text != json->unescaped) {
		json->unescaped =
			torsh_array_reserve(json->unescaped, name->n, &json->unescaped_room, 1);
		memcpy(json->unescaped, name->text, name->n);
		name->text = json->unescaped;
	}
	return take_byte(json, ':');
}

bool torsh_json_item(struct json_reader *json, bool *is_open)
{
	return go_on(json, is_open, ']');
}

static bool skip_word(struct json_reader *json)
{
	static const char *const words[] = {"true", "false", "null"};
	double value;
	bool is_whole;
	size_t n;

	if (torsh_json_peek(json) == JSON_NUMBER)
		return torsh_json_number(json, &value, &is_whole);
	n = word_length(json);
	for (size_t i = 0; n && i < sizeof(words) / sizeof(*words); i++) {
		if (strlen(words[i]) == n && !memcmp(words[i], json->bytes + json->at, n)) {
			json->at += n;
			return true;
		}
	}
	return set_fault(json, "not JSON");
}

static bool skip_slowly(struct json_reader *json)
{
	bool is_object[JSON_READER_DEPTH], is_open[JSON_READER_DEPTH];
	struct json_slice text;
	size_t depth = 0;

	do {
		enum json_value kind;

		if (depth &&
		    !(is_object[depth - 1] ? torsh_json_member(json, &is_open[depth - 1], &text)
					   : torsh_json_item(json, &is_open[depth - 1]))) {
			depth--;
			continue;
		}
		kind = torsh_json_peek(json);
		if (kind == JSON_OBJECT || kind == JSON_ARRAY) {
			if (depth == JSON_READER_DEPTH)
				return set_fault(json, "64 values within each other");
			is_object[depth] = kind == JSON_OBJECT;
			is_open[depth++] = false;
			json->at++;
		} else if (kind == JSON_TEXT) {
			torsh_json_text(json, &text);
		} else if (kind == JSON_NONE) {
			set_fault(json, "it ends in the middle");
		} else {
			skip_word(json);
		}
	} while (depth && !json->fault);
	return !json->fault;
}

/* ---- whole values in the window -------------------------------------------------------------- */

/* What is not whole in the window, or isn't plain, is looked at value by value. */
bool torsh_json_skip(struct json_reader *json)
{
	const char *after;

	if (!next_byte(json))
		return set_fault(json, "it ends in the middle");
	after = pass_whole(json->bytes + json->at, json->bytes + json->n);
	if (!after)
		return skip_slowly(json);
	json->at = (size_t)(after - json->bytes);
	return true;
}

bool torsh_json_look(struct json_reader *json, struct json_slice *value)
{
	const char *start, *after;

	if (!next_byte(json))
		return false;
	start = json->bytes + json->at;
	after = pass_whole(start, json->bytes + json->n);
	if (after)
		*value = (struct json_slice){start, (size_t)(after - start)};
	return after;
}

void torsh_json_pass(struct json_reader *json, struct json_slice value)
{
	json->at += value.n;
}

bool torsh_json_end(struct json_reader *json)
{
	if (next_byte(json))
		return set_fault(json, "more behind its end");
	return !json->fault;
}
