/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/symbols/rust/rust_reader.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/symbols/rust/punycode.h"

#define OUT_MAX 65536u
#define DEPTH_MAX 200u
#define STEPS_MAX 20000u

void torsh_rust_put_bytes(struct rust_reader *reader, const char *text, size_t n)
{
	if (reader->is_silent || reader->is_wrong)
		return;
	if (reader->n_out + n >= OUT_MAX) {
		reader->is_wrong = true;
		return;
	}
	reader->out = torsh_array_reserve(reader->out, reader->n_out + n, &reader->room, 1);
	memcpy(reader->out + reader->n_out, text, n);
	reader->n_out += n;
}

void torsh_rust_put(struct rust_reader *reader, const char *text)
{
	torsh_rust_put_bytes(reader, text, strlen(text));
}

void torsh_rust_put_number(struct rust_reader *reader, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	torsh_rust_put(reader, text);
}

char torsh_rust_next(struct rust_reader *reader)
{
	if (reader->is_wrong || !*reader->at) {
		reader->is_wrong = true;
		return '\0';
	}
	return *reader->at++;
}

bool torsh_rust_take(struct rust_reader *reader, char wanted)
{
	if (reader->is_wrong || *reader->at != wanted)
		return false;
	reader->at++;
	return true;
}

bool torsh_rust_enter(struct rust_reader *reader)
{
	if (++reader->n_steps > STEPS_MAX || ++reader->depth > DEPTH_MAX)
		reader->is_wrong = true;
	return !reader->is_wrong;
}

void torsh_rust_leave(struct rust_reader *reader)
{
	reader->depth--;
}

uint64_t torsh_rust_base_62(struct rust_reader *reader)
{
	uint64_t value = 0;

	if (torsh_rust_take(reader, '_'))
		return 0;
	for (char c = torsh_rust_next(reader); c != '_' && !reader->is_wrong;
	     c = torsh_rust_next(reader)) {
		unsigned digit = isdigit((unsigned char)c)   ? (unsigned)(c - '0')
				 : islower((unsigned char)c) ? (unsigned)(c - 'a') + 10
				 : isupper((unsigned char)c) ? (unsigned)(c - 'A') + 36
							     : 62;

		if (digit == 62 || __builtin_mul_overflow(value, 62, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			reader->is_wrong = true;
	}
	return value + 1;
}

uint64_t torsh_rust_optional_62(struct rust_reader *reader, char tag)
{
	return torsh_rust_take(reader, tag) ? torsh_rust_base_62(reader) + 1 : 0;
}

/* Read the length, an optional "_", and the bytes. */
static struct rust_name read_name(struct rust_reader *reader)
{
	struct rust_name name = {0};

	if (!torsh_rust_take(reader, '0')) {
		while (isdigit((unsigned char)*reader->at) && name.n < OUT_MAX && !reader->is_wrong)
			name.n = name.n * 10 + (size_t)(*reader->at++ - '0');
		if (name.n == 0)
			reader->is_wrong = true;
	}
	torsh_rust_take(reader, '_');
	if (reader->is_wrong || strnlen(reader->at, name.n) < name.n) {
		reader->is_wrong = true;
		return (struct rust_name){0};
	}
	name.text = reader->at;
	reader->at += name.n;
	return name;
}

struct rust_name torsh_rust_identifier(struct rust_reader *reader)
{
	bool is_punycode = torsh_rust_take(reader, 'u');
	struct rust_name name = read_name(reader);

	name.is_punycode = is_punycode;
	return name;
}

void torsh_rust_put_name(struct rust_reader *reader, const struct rust_name *name)
{
	char text[1024];

	if (reader->is_wrong)
		return;
	if (!name->is_punycode)
		torsh_rust_put_bytes(reader, name->text, name->n);
	else if (torsh_punycode_decode(name->text, name->n, text, sizeof(text)))
		torsh_rust_put(reader, text);
	else
		reader->is_wrong = true;
}

void torsh_rust_read_back(struct rust_reader *reader,
			  void (*rule)(struct rust_reader *reader, bool in_value), bool in_value)
{
	const char *begin = reader->at - 1, *after;
	uint64_t to = torsh_rust_base_62(reader);

	if (reader->is_wrong || to >= (uint64_t)(begin - reader->start)) {
		reader->is_wrong = true;
		return;
	}
	if (reader->is_silent)
		return;
	after = reader->at;
	reader->at = reader->start + to;
	rule(reader, in_value);
	reader->at = after;
}

void torsh_rust_put_lifetime(struct rust_reader *reader, uint64_t index)
{
	char text[3] = "'_";

	if (index > reader->n_bound) {
		reader->is_wrong = true;
		return;
	}
	if (index && reader->n_bound - index < 26)
		text[1] = (char)('a' + (char)(reader->n_bound - index));
	torsh_rust_put(reader, text);
	if (index && reader->n_bound - index >= 26)
		torsh_rust_put_number(reader, reader->n_bound - index);
}

size_t torsh_rust_read_list(struct rust_reader *reader, void (*rule)(struct rust_reader *reader),
			    const char *separator)
{
	size_t n = 0;

	for (; !reader->is_wrong && !torsh_rust_take(reader, 'E'); n++) {
		torsh_rust_put(reader, n ? separator : "");
		rule(reader);
	}
	return n;
}
