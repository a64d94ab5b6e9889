/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A file of suppressions up to the first NUL, then the name that its rules are tried on. */
#include "tools/memory/leaks/rules/suppress.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

/*
 * The plainest reading of a pattern's middle: `*` stands for anything, other characters for
 * themselves.
 */
static bool matches_here(const char *pattern, const char *end, const char *name, bool is_tied)
{
	for (; pattern < end && *pattern != '*'; pattern++, name++) {
		if (!*name || *pattern != *name)
			return false;
	}
	if (pattern == end)
		return !is_tied || !*name;
	for (;; name++) {
		if (matches_here(pattern + 1, end, name, is_tied))
			return true;
		if (!*name)
			return false;
	}
}

static bool matches(const char *pattern, const char *name)
{
	const char *end = pattern + strlen(pattern);
	bool is_tied = end > pattern && end[-1] == '$';

	end -= is_tied;
	if (pattern < end && *pattern == '^')
		return matches_here(pattern + 1, end, name, is_tied);
	for (;; name++) {
		if (matches_here(pattern, end, name, is_tied))
			return true;
		if (!*name)
			return false;
	}
}

/* The plain way takes the name's length to the power of the stars: only for what is short. */
static void check(const char *pattern, const char *name)
{
	unsigned n_stars = 0;

	for (const char *at = pattern; *at; at++)
		n_stars += *at == '*';
	if (n_stars <= 3 && strlen(name) <= 40 &&
	    matches(pattern, name) != torsh_suppress_matches(pattern, name))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	char *copy = calloc(1, n_bytes + 2), *name;
	struct suppress suppress = {0};
	unsigned bad_line = 0;

	if (!copy)
		abort();
	if (n_bytes)
		memcpy(copy, bytes, n_bytes);
	name = copy + strlen(copy) + 1;
	if (torsh_suppress_parse(&suppress, copy, &bad_line) < 0 && !bad_line)
		abort();
	for (size_t i = 0; i < suppress.n; i++) {
		long found = torsh_suppress_find(&suppress, suppress.rules[i].kind, 1, name);

		check(suppress.rules[i].pattern, name);
		if (!*suppress.rules[i].pattern || found >= (long)suppress.n)
			abort();
	}
	torsh_suppress_free(&suppress);
	free(copy);
	return 0;
}
