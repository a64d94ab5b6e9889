/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Types in Rust's v0 symbols (RFC 2603, "type"). */
#include <ctype.h>

#include "tools/symbols/rust/rust_grammar.h"

static void type_again(struct rust_reader *reader, bool in_value)
{
	(void)in_value;
	torsh_rust_read_type(reader);
}

/* Read a binder. Returns the number of lifetimes that it binds. */
static uint64_t read_binder(struct rust_reader *reader)
{
	uint64_t n = torsh_rust_optional_62(reader, 'G');

	if (n > 1000)
		reader->is_wrong = true;
	if (n == 0 || reader->is_wrong)
		return 0;
	torsh_rust_put(reader, "for<");
	for (uint64_t i = 0; i < n; i++) {
		torsh_rust_put(reader, i ? ", " : "");
		reader->n_bound++;
		torsh_rust_put_lifetime(reader, 1);
	}
	torsh_rust_put(reader, "> ");
	return n;
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

static void read_abi(struct rust_reader *reader)
{
	struct rust_name name;

	torsh_rust_put(reader, "extern \"");
	if (torsh_rust_take(reader, 'C')) {
		torsh_rust_put(reader, "C");
	} else {
		name = torsh_rust_identifier(reader);
		for (size_t i = 0; i < name.n; i++)
			torsh_rust_put_bytes(reader, name.text[i] == '_' ? "-" : &name.text[i], 1);
	}
	torsh_rust_put(reader, "\" ");
}

static void read_function_type(struct rust_reader *reader)
{
	uint64_t n_bound = read_binder(reader);

	if (torsh_rust_take(reader, 'U'))
		torsh_rust_put(reader, "unsafe ");
	if (torsh_rust_take(reader, 'K'))
		read_abi(reader);
	torsh_rust_put(reader, "fn(");
	torsh_rust_read_list(reader, torsh_rust_read_type, ", ");
	torsh_rust_put(reader, ")");
	if (!torsh_rust_take(reader, 'u')) {
		torsh_rust_put(reader, " -> ");
		torsh_rust_read_type(reader);
	}
	reader->n_bound -= n_bound;
}

/* Read a trait and its associated types, which are printed as arguments: Iterator<Item = u8>. */
static bool read_open_path(struct rust_reader *reader)
{
	const char *after = reader->at;
	bool is_open = false;

	if (torsh_rust_take(reader, 'B')) {
		uint64_t to = torsh_rust_base_62(reader);

		if (reader->is_wrong || to >= (uint64_t)(after - reader->start) ||
		    !torsh_rust_enter(reader)) {
			reader->is_wrong = true;
			return false;
		}
		after = reader->at;
		reader->at = reader->start + to;
		is_open = read_open_path(reader);
		reader->at = after;
		torsh_rust_leave(reader);
	} else if (torsh_rust_take(reader, 'I')) {
		torsh_rust_read_path(reader, false);
		torsh_rust_put(reader, "<");
		torsh_rust_read_list(reader, torsh_rust_read_argument, ", ");
		is_open = true;
	} else {
		torsh_rust_read_path(reader, false);
	}
	return is_open;
}

static void read_dyn_trait(struct rust_reader *reader)
{
	bool is_open = read_open_path(reader);

	while (!reader->is_wrong && torsh_rust_take(reader, 'p')) {
		struct rust_name name = torsh_rust_identifier(reader);

		torsh_rust_put(reader, is_open ? ", " : "<");
		is_open = true;
		torsh_rust_put_name(reader, &name);
		torsh_rust_put(reader, " = ");
		torsh_rust_read_type(reader);
	}
	torsh_rust_put(reader, is_open ? ">" : "");
}

static void read_dyn(struct rust_reader *reader)
{
	uint64_t n_bound, lifetime;

	torsh_rust_put(reader, "dyn ");
	n_bound = read_binder(reader);
	torsh_rust_read_list(reader, read_dyn_trait, " + ");
	reader->n_bound -= n_bound;
	if (!torsh_rust_take(reader, 'L')) {
		reader->is_wrong = true;
		return;
	}
	lifetime = torsh_rust_base_62(reader);
	if (lifetime) {
		torsh_rust_put(reader, " + ");
		torsh_rust_put_lifetime(reader, lifetime);
	}
}

static void read_reference(struct rust_reader *reader, bool is_mutable)
{
	torsh_rust_put(reader, "&");
	if (torsh_rust_take(reader, 'L')) {
		uint64_t lifetime = torsh_rust_base_62(reader);

		if (lifetime) {
			torsh_rust_put_lifetime(reader, lifetime);
			torsh_rust_put(reader, " ");
		}
	}
	torsh_rust_put(reader, is_mutable ? "mut " : "");
	torsh_rust_read_type(reader);
}

static void read_array(struct rust_reader *reader, bool has_length)
{
	torsh_rust_put(reader, "[");
	torsh_rust_read_type(reader);
	if (has_length) {
		torsh_rust_put(reader, "; ");
		torsh_rust_read_constant(reader);
	}
	torsh_rust_put(reader, "]");
}

static void read_tuple(struct rust_reader *reader)
{
	torsh_rust_put(reader, "(");
	torsh_rust_put(reader,
		       torsh_rust_read_list(reader, torsh_rust_read_type, ", ") == 1 ? ",)" : ")");
}

static void read_compound_type(struct rust_reader *reader, char kind)
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
		torsh_rust_put(reader, kind == 'P' ? "*const " : "*mut ");
		torsh_rust_read_type(reader);
		break;
	case 'F':
		read_function_type(reader);
		break;
	case 'D':
		read_dyn(reader);
		break;
	case 'B':
		torsh_rust_read_back(reader, type_again, false);
		break;
	default:
		reader->at--;
		torsh_rust_read_path(reader, false);
	}
}

void torsh_rust_read_type(struct rust_reader *reader)
{
	char kind;

	if (!torsh_rust_enter(reader))
		return;
	kind = torsh_rust_next(reader);
	if (basic_type(kind))
		torsh_rust_put(reader, basic_type(kind));
	else if (!reader->is_wrong)
		read_compound_type(reader, kind);
	torsh_rust_leave(reader);
}
