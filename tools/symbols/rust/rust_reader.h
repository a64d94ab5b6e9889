/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The tokens of Rust's v0 symbols (RFC 2603), and the text made from them. After an error
 * (is_wrong) nothing more is read or printed: callers check once, at the end. Back references may
 * refer to one another, so depth, number of steps and output are bounded.
 */
#ifndef TORSH_SYMBOLS_RUST_RUST_READER_H
#define TORSH_SYMBOLS_RUST_RUST_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rust_reader {
	const char *start, *at; /* after "_R" */
	char *out; /* owned by the caller; not terminated */
	size_t n_out, room;
	unsigned depth, n_steps;
	uint64_t n_bound; /* lifetimes of the enclosing binders */
	bool is_silent; /* read without printing */
	bool is_wrong;
};

/* An identifier, as in the symbol. */
struct rust_name {
	const char *text;
	size_t n; /* bytes */
	bool is_punycode;
};

/* Append to the output, unless the reader is silent or wrong. */
void torsh_rust_put_bytes(struct rust_reader *reader, const char *text, size_t n);

/* Append a text. */
void torsh_rust_put(struct rust_reader *reader, const char *text);

/* Append a decimal number. */
void torsh_rust_put_number(struct rust_reader *reader, uint64_t value);
/* Append a name, decoded if it is Punycode. */
void torsh_rust_put_name(struct rust_reader *reader, const struct rust_name *name);
/*
 * Append a lifetime by its de Bruijn index; 0 is "'_". Those of enclosing binders are 'a, 'b and so
 * on, from the outermost.
 */
void torsh_rust_put_lifetime(struct rust_reader *reader, uint64_t index);

/* Returns the next character; at the end '\0', and the reader becomes wrong. */
char torsh_rust_next(struct rust_reader *reader);
/* Consume the next character if it is the wanted one. Returns whether it was. */
bool torsh_rust_take(struct rust_reader *reader, char wanted);

/*
 * A recursive rule starts with torsh_rust_enter and, if that returned true, ends with
 * torsh_rust_leave.
 */
bool torsh_rust_enter(struct rust_reader *reader);

/* End a recursive rule. */
void torsh_rust_leave(struct rust_reader *reader);

/* Read a base-62 number up to its "_". */
uint64_t torsh_rust_base_62(struct rust_reader *reader);
/* Read a tagged base-62 number plus one; 0 without the tag. */
uint64_t torsh_rust_optional_62(struct rust_reader *reader, char tag);
/* Read a name and skip its disambiguator. The name is valid as long as the symbol. */
struct rust_name torsh_rust_identifier(struct rust_reader *reader);

/* Apply the rule at the earlier position that a back reference ('B' was read) refers to. */
void torsh_rust_read_back(struct rust_reader *reader,
			  void (*rule)(struct rust_reader *reader, bool in_value), bool in_value);
/*
 * Apply the rule to each item up to the "E", with a separator in the output. Returns the number of
 * items.
 */
size_t torsh_rust_read_list(struct rust_reader *reader, void (*rule)(struct rust_reader *reader),
			    const char *separator);

#endif
