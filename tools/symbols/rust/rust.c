/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Paths and constants of v0 symbols (RFC 2603). Each rule of the grammar is a function that reads
 * from reader->at and prints. After an error nothing more is read or printed.
 */
#include "tools/symbols/rust/rust.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/symbols/rust/rust_grammar.h"
#include "tools/symbols/rust/rust_legacy.h"

static void constant_again(struct rust_reader *reader, bool in_value)
{
	(void)in_value;
	torsh_rust_read_constant(reader);
}

void torsh_rust_read_argument(struct rust_reader *reader)
{
	if (torsh_rust_take(reader, 'L'))
		torsh_rust_put_lifetime(reader, torsh_rust_base_62(reader));
	else if (torsh_rust_take(reader, 'K'))
		torsh_rust_read_constant(reader);
	else
		torsh_rust_read_type(reader);
}

static void read_nested(struct rust_reader *reader, bool in_value)
{
	char space = torsh_rust_next(reader);
	uint64_t disambiguator;
	struct rust_name name;

	torsh_rust_read_path(reader, in_value);
	disambiguator = torsh_rust_optional_62(reader, 's');
	name = torsh_rust_identifier(reader);
	if (islower((unsigned char)space)) {
		torsh_rust_put(reader, name.n ? "::" : "");
		torsh_rust_put_name(reader, &name);
		return;
	}
	torsh_rust_put(reader, "::{");
	if (space == 'C' || space == 'S')
		torsh_rust_put(reader, space == 'C' ? "closure" : "shim");
	else
		torsh_rust_put_bytes(reader, &space, 1);
	torsh_rust_put(reader, name.n ? ":" : "");
	torsh_rust_put_name(reader, &name);
	torsh_rust_put(reader, "#");
	torsh_rust_put_number(reader, disambiguator);
	torsh_rust_put(reader, "}");
}

/*
 * M, X: the impl is identified by its module's path, which is not printed. X, Y: the trait is
 * printed.
 */
static void read_impl(struct rust_reader *reader, char kind)
{
	if (kind != 'Y') {
		bool was_silent = reader->is_silent;

		reader->is_silent = true;
		torsh_rust_optional_62(reader, 's');
		torsh_rust_read_path(reader, false);
		reader->is_silent = was_silent;
	}
	torsh_rust_put(reader, "<");
	torsh_rust_read_type(reader);
	if (kind != 'M') {
		torsh_rust_put(reader, " as ");
		torsh_rust_read_path(reader, false);
	}
	torsh_rust_put(reader, ">");
}

void torsh_rust_read_path(struct rust_reader *reader, bool in_value)
{
	struct rust_name name;
	char kind;

	if (!torsh_rust_enter(reader))
		return;
	switch (kind = torsh_rust_next(reader)) {
	case 'C':
		torsh_rust_optional_62(reader, 's');
		name = torsh_rust_identifier(reader);
		torsh_rust_put_name(reader, &name);
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
		torsh_rust_read_path(reader, in_value);
		torsh_rust_put(reader, in_value ? "::<" : "<");
		torsh_rust_read_list(reader, torsh_rust_read_argument, ", ");
		torsh_rust_put(reader, ">");
		break;
	case 'B':
		torsh_rust_read_back(reader, torsh_rust_read_path, in_value);
		break;
	default:
		reader->is_wrong = true;
	}
	torsh_rust_leave(reader);
}

static void put_character(struct rust_reader *reader, uint64_t value)
{
	char text[16];

	if (value == '\'' || value == '\\')
		snprintf(text, sizeof(text), "\\%c", (char)value);
	else if (value >= ' ' && value < 0x7f)
		snprintf(text, sizeof(text), "%c", (char)value);
	else
		snprintf(text, sizeof(text), "\\u{%llx}", (unsigned long long)value);
	torsh_rust_put(reader, "'");
	torsh_rust_put(reader, text);
	torsh_rust_put(reader, "'");
}

/* Read a constant of a basic type: hexadecimal digits up to "_". */
static void read_value(struct rust_reader *reader, char type)
{
	const char *digits;
	size_t n = 0;
	uint64_t value;

	torsh_rust_put(reader, torsh_rust_take(reader, 'n') ? "-" : "");
	for (digits = reader->at; isxdigit((unsigned char)digits[n]); n++)
		;
	value = n ? strtoull(digits, NULL, 16) : 0;
	reader->at += n;
	if (!torsh_rust_take(reader, '_')) {
		reader->is_wrong = true;
	} else if (n > 16) {
		torsh_rust_put(reader, "0x");
		torsh_rust_put_bytes(reader, digits, n);
	} else if (type == 'b') {
		torsh_rust_put(reader, value ? "true" : "false");
	} else if (type == 'c') {
		put_character(reader, value);
	} else {
		torsh_rust_put_number(reader, value);
	}
}

void torsh_rust_read_constant(struct rust_reader *reader)
{
	char type;

	if (!torsh_rust_enter(reader))
		return;
	type = torsh_rust_next(reader);
	if (type == 'B')
		torsh_rust_read_back(reader, constant_again, false);
	else if (type == 'p')
		torsh_rust_put(reader, "_");
	else if (type && strchr("ahijlmnostxybc", type))
		read_value(reader, type);
	else
		reader->is_wrong = true;
	torsh_rust_leave(reader);
}

/*
 * Print a suffix that tools append: ".cold" is printed, ".llvm.123" is dropped, because it has no
 * meaning for a reader.
 */
static void put_suffix(struct rust_reader *reader, const char *suffix)
{
	if (!*suffix || strncmp(suffix, ".llvm.", 6) == 0)
		return;
	torsh_rust_put(reader, " [clone ");
	torsh_rust_put(reader, suffix);
	torsh_rust_put(reader, "]");
}

static char *finish(struct rust_reader *reader)
{
	if (reader->is_wrong || !reader->n_out) {
		free(reader->out);
		return NULL;
	}
	torsh_rust_put_bytes(reader, "", 1);
	return reader->out;
}

static char *demangle_v0(const char *symbol)
{
	struct rust_reader reader = {.start = symbol, .at = symbol};

	torsh_rust_read_path(&reader, true);
	/* The crate that instantiated this copy. */
	if (!reader.is_wrong && *reader.at && *reader.at != '.' && *reader.at != '$') {
		reader.is_silent = true;
		torsh_rust_read_path(&reader, false);
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
