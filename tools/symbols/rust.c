/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * See tools/symbols/rust.h. A function for each rule of the grammar in RFC 2603: it reads from `at`
 * and prints. After a mistake nothing is read or printed any more. References back may name one
 * another: what is printed is bounded.
 */
#include "tools/symbols/rust.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/symbols/punycode.h"
#include "tools/symbols/rust_legacy.h"

#define OUT_MAX 65536u
#define DEPTH_MAX 200u
#define STEPS_MAX 20000u

struct reader {
	const char *start, *at; /* after "_R" */
	char *out;
	size_t n_out, room;
	unsigned depth, n_steps;
	uint64_t n_bound; /* lifetimes of the binders around */
	bool is_silent; /* read only */
	bool is_wrong;
};

static void read_path(struct reader *reader, bool in_value);
static void read_type(struct reader *reader);
static void read_constant(struct reader *reader);

static void put_bytes(struct reader *reader, const char *text, size_t n)
{
	if (reader->is_silent || reader->is_wrong)
		return;
	if (reader->n_out + n >= OUT_MAX) {
		reader->is_wrong = true;
		return;
	}
	while (reader->n_out + n >= reader->room)
		reader->out = torsh_need_room(reader->out, reader->room, &reader->room, 1);
	memcpy(reader->out + reader->n_out, text, n);
	reader->n_out += n;
}

static void put(struct reader *reader, const char *text)
{
	put_bytes(reader, text, strlen(text));
}

static void put_number(struct reader *reader, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	put(reader, text);
}

static char next(struct reader *reader)
{
	if (reader->is_wrong || !*reader->at) {
		reader->is_wrong = true;
		return '\0';
	}
	return *reader->at++;
}

static bool take(struct reader *reader, char wanted)
{
	if (reader->is_wrong || *reader->at != wanted)
		return false;
	reader->at++;
	return true;
}

/* Each rule that can contain itself begins so, and goes back by leave. */
static bool enter(struct reader *reader)
{
	if (++reader->n_steps > STEPS_MAX || ++reader->depth > DEPTH_MAX)
		reader->is_wrong = true;
	return !reader->is_wrong;
}

static void leave(struct reader *reader)
{
	reader->depth--;
}

static uint64_t read_base_62(struct reader *reader)
{
	uint64_t value = 0;

	if (take(reader, '_'))
		return 0;
	for (char c = next(reader); c != '_' && !reader->is_wrong; c = next(reader)) {
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

/* 0 where the tag isn't there. */
static uint64_t read_optional_62(struct reader *reader, char tag)
{
	return take(reader, tag) ? read_base_62(reader) + 1 : 0;
}

struct name {
	const char *text;
	size_t n;
	bool is_punycode;
};

/* Its length, maybe "_", and it. */
static struct name read_name(struct reader *reader)
{
	struct name name = {0};

	if (!take(reader, '0')) {
		while (isdigit((unsigned char)*reader->at) && name.n < OUT_MAX && !reader->is_wrong)
			name.n = name.n * 10 + (size_t)(*reader->at++ - '0');
		if (name.n == 0)
			reader->is_wrong = true;
	}
	take(reader, '_');
	if (reader->is_wrong || strnlen(reader->at, name.n) < name.n) {
		reader->is_wrong = true;
		return (struct name){0};
	}
	name.text = reader->at;
	reader->at += name.n;
	return name;
}

static struct name read_identifier(struct reader *reader)
{
	bool is_punycode = take(reader, 'u');
	struct name name = read_name(reader);

	name.is_punycode = is_punycode;
	return name;
}

static void put_name(struct reader *reader, const struct name *name)
{
	char text[1024];

	if (reader->is_wrong)
		return;
	if (!name->is_punycode)
		put_bytes(reader, name->text, name->n);
	else if (torsh_punycode_decode(name->text, name->n, text, sizeof(text)))
		put(reader, text);
	else
		reader->is_wrong = true;
}

/* What was read before, further ahead in the symbol. */
static void read_back(struct reader *reader, void (*rule)(struct reader *reader, bool in_value),
		      bool in_value)
{
	const char *begin = reader->at - 1, *after;
	uint64_t to = read_base_62(reader);

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

static void type_again(struct reader *reader, bool in_value)
{
	(void)in_value;
	read_type(reader);
}

static void constant_again(struct reader *reader, bool in_value)
{
	(void)in_value;
	read_constant(reader);
}

/* Lifetimes that a binder around has bound are called 'a, 'b and so on, from the outermost. */
static void put_lifetime(struct reader *reader, uint64_t index)
{
	char text[3] = "'_";

	if (index > reader->n_bound) {
		reader->is_wrong = true;
		return;
	}
	if (index && reader->n_bound - index < 26)
		text[1] = (char)('a' + (char)(reader->n_bound - index));
	put(reader, text);
	if (index && reader->n_bound - index >= 26)
		put_number(reader, reader->n_bound - index);
}

/* Returns how many lifetimes are bound from here on. */
static uint64_t read_binder(struct reader *reader)
{
	uint64_t n = read_optional_62(reader, 'G');

	if (n > 1000)
		reader->is_wrong = true;
	if (n == 0 || reader->is_wrong)
		return 0;
	put(reader, "for<");
	for (uint64_t i = 0; i < n; i++) {
		put(reader, i ? ", " : "");
		reader->n_bound++;
		put_lifetime(reader, 1);
	}
	put(reader, "> ");
	return n;
}

static void read_generic_argument(struct reader *reader)
{
	if (take(reader, 'L'))
		put_lifetime(reader, read_base_62(reader));
	else if (take(reader, 'K'))
		read_constant(reader);
	else
		read_type(reader);
}

/* Up to the E. Returns how many there were. */
static size_t read_list(struct reader *reader, void (*rule)(struct reader *reader),
			const char *between)
{
	size_t n = 0;

	for (; !reader->is_wrong && !take(reader, 'E'); n++) {
		put(reader, n ? between : "");
		rule(reader);
	}
	return n;
}

static void read_nested(struct reader *reader, bool in_value)
{
	char space = next(reader);
	uint64_t disambiguator;
	struct name name;

	read_path(reader, in_value);
	disambiguator = read_optional_62(reader, 's');
	name = read_identifier(reader);
	if (islower((unsigned char)space)) {
		put(reader, name.n ? "::" : "");
		put_name(reader, &name);
		return;
	}
	put(reader, "::{");
	if (space == 'C' || space == 'S')
		put(reader, space == 'C' ? "closure" : "shim");
	else
		put_bytes(reader, &space, 1);
	put(reader, name.n ? ":" : "");
	put_name(reader, &name);
	put(reader, "#");
	put_number(reader, disambiguator);
	put(reader, "}");
}

/* M, X: which impl, by the path of its module, which isn't printed; X, Y: of which trait. */
static void read_impl(struct reader *reader, char kind)
{
	if (kind != 'Y') {
		bool was_silent = reader->is_silent;

		reader->is_silent = true;
		read_optional_62(reader, 's');
		read_path(reader, false);
		reader->is_silent = was_silent;
	}
	put(reader, "<");
	read_type(reader);
	if (kind != 'M') {
		put(reader, " as ");
		read_path(reader, false);
	}
	put(reader, ">");
}

static void read_path(struct reader *reader, bool in_value)
{
	struct name name;
	char kind;

	if (!enter(reader))
		return;
	switch (kind = next(reader)) {
	case 'C':
		read_optional_62(reader, 's');
		name = read_identifier(reader);
		put_name(reader, &name);
		break;
	case 'N':
		read_nested(reader, in_value);
		break;
	case 'M':
	case 'X':
	case 'Y':
		read_impl(reader, kind);
		break;
	case 'I':
		read_path(reader, in_value);
		put(reader, in_value ? "::<" : "<");
		read_list(reader, read_generic_argument, ", ");
		put(reader, ">");
		break;
	case 'B':
		read_back(reader, read_path, in_value);
		break;
	default:
		reader->is_wrong = true;
	}
	leave(reader);
}

static const char *basic_type(char letter)
{
	static const char *const types[26] = {
		"i8",	 "bool", "char", "f64", "str",	"f32",	NULL,  "u8", "isize",
		"usize", NULL,	 "i32",	 "u32", "i128", "u128", "_",   NULL, NULL,
		"i16",	 "u16",	 "()",	 "...", NULL,	"i64",	"u64", "!",
	};

	return islower((unsigned char)letter) ? types[letter - 'a'] : NULL;
}

static void read_abi(struct reader *reader)
{
	struct name name;

	put(reader, "extern \"");
	if (take(reader, 'C')) {
		put(reader, "C");
	} else {
		name = read_identifier(reader);
		for (size_t i = 0; i < name.n; i++)
			put_bytes(reader, name.text[i] == '_' ? "-" : &name.text[i], 1);
	}
	put(reader, "\" ");
}

static void read_function_type(struct reader *reader)
{
	uint64_t n_bound = read_binder(reader);

	if (take(reader, 'U'))
		put(reader, "unsafe ");
	if (take(reader, 'K'))
		read_abi(reader);
	put(reader, "fn(");
	read_list(reader, read_type, ", ");
	put(reader, ")");
	if (!take(reader, 'u')) {
		put(reader, " -> ");
		read_type(reader);
	}
	reader->n_bound -= n_bound;
}

/* A trait with its associated types among its arguments: Iterator<Item = u8>. */
static bool read_open_path(struct reader *reader)
{
	const char *after = reader->at;
	bool is_open = false;

	if (take(reader, 'B')) {
		uint64_t to = read_base_62(reader);

		if (reader->is_wrong || to >= (uint64_t)(after - reader->start) || !enter(reader)) {
			reader->is_wrong = true;
			return false;
		}
		after = reader->at;
		reader->at = reader->start + to;
		is_open = read_open_path(reader);
		reader->at = after;
		leave(reader);
	} else if (take(reader, 'I')) {
		read_path(reader, false);
		put(reader, "<");
		read_list(reader, read_generic_argument, ", ");
		is_open = true;
	} else {
		read_path(reader, false);
	}
	return is_open;
}

static void read_dyn_trait(struct reader *reader)
{
	bool is_open = read_open_path(reader);

	while (!reader->is_wrong && take(reader, 'p')) {
		struct name name = read_identifier(reader);

		put(reader, is_open ? ", " : "<");
		is_open = true;
		put_name(reader, &name);
		put(reader, " = ");
		read_type(reader);
	}
	put(reader, is_open ? ">" : "");
}

static void read_dyn(struct reader *reader)
{
	uint64_t n_bound, lifetime;

	put(reader, "dyn ");
	n_bound = read_binder(reader);
	read_list(reader, read_dyn_trait, " + ");
	reader->n_bound -= n_bound;
	if (!take(reader, 'L')) {
		reader->is_wrong = true;
		return;
	}
	lifetime = read_base_62(reader);
	if (lifetime) {
		put(reader, " + ");
		put_lifetime(reader, lifetime);
	}
}

static void read_reference(struct reader *reader, bool is_mutable)
{
	put(reader, "&");
	if (take(reader, 'L')) {
		uint64_t lifetime = read_base_62(reader);

		if (lifetime) {
			put_lifetime(reader, lifetime);
			put(reader, " ");
		}
	}
	put(reader, is_mutable ? "mut " : "");
	read_type(reader);
}

static void read_array(struct reader *reader, bool has_length)
{
	put(reader, "[");
	read_type(reader);
	if (has_length) {
		put(reader, "; ");
		read_constant(reader);
	}
	put(reader, "]");
}

static void read_tuple(struct reader *reader)
{
	put(reader, "(");
	put(reader, read_list(reader, read_type, ", ") == 1 ? ",)" : ")");
}

static void read_compound_type(struct reader *reader, char kind)
{
	switch (kind) {
	case 'A':
	case 'S':
		read_array(reader, kind == 'A');
		break;
	case 'T':
		read_tuple(reader);
		break;
	case 'R':
	case 'Q':
		read_reference(reader, kind == 'Q');
		break;
	case 'P':
	case 'O':
		put(reader, kind == 'P' ? "*const " : "*mut ");
		read_type(reader);
		break;
	case 'F':
		read_function_type(reader);
		break;
	case 'D':
		read_dyn(reader);
		break;
	case 'B':
		read_back(reader, type_again, false);
		break;
	default:
		reader->at--;
		read_path(reader, false);
	}
}

static void read_type(struct reader *reader)
{
	char kind;

	if (!enter(reader))
		return;
	kind = next(reader);
	if (basic_type(kind))
		put(reader, basic_type(kind));
	else if (!reader->is_wrong)
		read_compound_type(reader, kind);
	leave(reader);
}

static void put_character(struct reader *reader, uint64_t value)
{
	char text[16];

	if (value == '\'' || value == '\\')
		snprintf(text, sizeof(text), "\\%c", (char)value);
	else if (value >= ' ' && value < 0x7f)
		snprintf(text, sizeof(text), "%c", (char)value);
	else
		snprintf(text, sizeof(text), "\\u{%llx}", (unsigned long long)value);
	put(reader, "'");
	put(reader, text);
	put(reader, "'");
}

/* A constant of a basic type: hexadecimal digits up to "_". */
static void read_value(struct reader *reader, char type)
{
	const char *digits;
	size_t n = 0;
	uint64_t value;

	put(reader, take(reader, 'n') ? "-" : "");
	for (digits = reader->at; isxdigit((unsigned char)digits[n]); n++)
		;
	value = n ? strtoull(digits, NULL, 16) : 0;
	reader->at += n;
	if (!take(reader, '_')) {
		reader->is_wrong = true;
	} else if (n > 16) {
		put(reader, "0x");
		put_bytes(reader, digits, n);
	} else if (type == 'b') {
		put(reader, value ? "true" : "false");
	} else if (type == 'c') {
		put_character(reader, value);
	} else {
		put_number(reader, value);
	}
}

static void read_constant(struct reader *reader)
{
	char type;

	if (!enter(reader))
		return;
	type = next(reader);
	if (type == 'B')
		read_back(reader, constant_again, false);
	else if (type == 'p')
		put(reader, "_");
	else if (type && strchr("ahijlmnostxybc", type))
		read_value(reader, type);
	else
		reader->is_wrong = true;
	leave(reader);
}

/* What tools append: ".llvm.123" has no meaning for a reader, ".cold" has. */
static void put_suffix(struct reader *reader, const char *suffix)
{
	if (!*suffix || strncmp(suffix, ".llvm.", 6) == 0)
		return;
	put(reader, " [clone ");
	put(reader, suffix);
	put(reader, "]");
}

static char *finish(struct reader *reader)
{
	if (reader->is_wrong || !reader->n_out) {
		free(reader->out);
		return NULL;
	}
	put_bytes(reader, "", 1);
	return reader->out;
}

static char *demangle_v0(const char *symbol)
{
	struct reader reader = {.start = symbol, .at = symbol};

	read_path(&reader, true);
	/* The crate that made this copy. */
	if (!reader.is_wrong && *reader.at && *reader.at != '.' && *reader.at != '$') {
		reader.is_silent = true;
		read_path(&reader, false);
		reader.is_silent = false;
	}
	if (!reader.is_wrong && *reader.at && *reader.at != '.' && *reader.at != '$')
		reader.is_wrong = true;
	put_suffix(&reader, reader.at);
	return finish(&reader);
}

char *torsh_rust_demangle(const char *symbol)
{
	if (strncmp(symbol, "_R", 2) == 0 && isupper((unsigned char)symbol[2]))
		return demangle_v0(symbol + 2);
	return strncmp(symbol, "_ZN", 3) == 0 ? torsh_rust_demangle_legacy(symbol + 3) : NULL;
}
