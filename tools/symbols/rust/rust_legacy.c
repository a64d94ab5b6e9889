/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/symbols/rust/rust_legacy.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"

static const struct {
	const char *code;
	char character;
} escapes[] = {
	{"$SP$", '@'}, {"$BP$", '*'}, {"$RF$", '&'}, {"$LT$", '<'},
	{"$GT$", '>'}, {"$LP$", '('}, {"$RP$", ')'}, {"$C$", ','},
};

/*
 * Decode an escape at text, e.g. "$u7e$", to a character below 128. Returns its length in bytes,
 * or 0 if there is none.
 */
static size_t read_escape(const char *text, char *character)
{
	char *end;

	for (size_t i = 0; i < sizeof(escapes) / sizeof(*escapes); i++) {
		*character = escapes[i].character;
		if (strncmp(text, escapes[i].code, strlen(escapes[i].code)) == 0)
			return strlen(escapes[i].code);
	}
	if (strncmp(text, "$u", 2) != 0 || !isxdigit((unsigned char)text[2]))
		return 0;
	*character = (char)(strtoul(text + 2, &end, 16) & 0x7f);
	return *end == '$' && end <= text + 4 && *character >= ' ' ? (size_t)(end + 1 - text) : 0;
}

/* Print one part of the path; the output is never longer than the input. */
static char *put_part(char *out, const char *text, size_t n)
{
	const char *end = text + n;

	/* The compiler inserts "_" because a part can't begin with "$". */
	if (n > 1 && text[0] == '_' && text[1] == '$')
		text++;
	while (text < end) {
		char character = *text;
		size_t taken = character == '$' ? read_escape(text, &character) : 0;

		if (text[0] == '.' && text + 1 < end && text[1] == '.') {
			*out++ = ':';
			character = ':';
			taken = 2;
		} else if (!taken) {
			character = *text;
			taken = 1;
		}
		*out++ = character;
		text += taken;
	}
	return out;
}

static bool is_hash(const char *text, size_t n)
{
	return n == 17 && text[0] == 'h' && strspn(text + 1, "0123456789abcdef") >= 16 &&
	       text[n] == 'E';
}

/*
 * Read the length at *at and move *at past the name. Returns the start of the name with *n bytes;
 * NULL: there is none.
 */
static const char *next_part(const char **at, size_t *n)
{
	const char *text;
	char *end;

	if (!isdigit((unsigned char)**at))
		return NULL;
	*n = strtoul(*at, &end, 10);
	text = end;
	if (strnlen(text, *n) < *n || *n == 0)
		return NULL;
	*at = text + *n;
	return text;
}

char *torsh_rust_demangle_legacy(const char *symbol)
{
	static const char clone[] = " [clone ]";
	/* "::" replaces a length, which has one digit at least: the output may be twice as long. */
	char *name = torsh_need(malloc(2 * strlen(symbol) + sizeof(clone))), *out = name;
	const char *text;
	size_t n;

	while ((text = next_part(&symbol, &n))) {
		if (out > name && is_hash(text, n)) {
			*out = '\0';
			if (symbol[1] && strncmp(symbol + 1, ".llvm.", 6) != 0)
				sprintf(out, " [clone %s]", symbol + 1);
			return name;
		}
		if (out > name)
			out = (char *)memcpy(out, "::", 2) + 2;
		out = put_part(out, text, n);
	}
	free(name);
	return NULL;
}
