/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Suppression rules for known leaks, in LeakSanitizer's syntax, one per line,
 *
 * leak:PATTERN # a comment
 *
 * PATTERN is matched against the names of functions, source files and modules of the whole stack;
 * a Python line also has the name "FILE:FUNCTION". `*` matches anything; `^` at the start and `$`
 * at the end anchor the pattern. "kept:" instead of "leak:" matches only native frames inside of
 * the innermost Python line; so does "import:", and only for allocations of Python's import of a
 * module. Both are limited to LEAKS_KEPT_BYTES: see tools/memory/leaks/leaks.h.
 *
 * "within:" suppresses nothing: built-in rules are compared with names of inlined functions only
 * inside of functions that it names, because reading DWARF takes long. Other rules always are.
 */
#ifndef TORSH_MEMORY_LEAKS_RULES_SUPPRESS_H
#define TORSH_MEMORY_LEAKS_RULES_SUPPRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum suppress_kind {
	SUPPRESS_LEAK,
	SUPPRESS_KEPT,
	SUPPRESS_IMPORT,
	SUPPRESS_WITHIN,
	N_SUPPRESS_KINDS
};

struct suppress_rule {
	char *pattern;
	enum suppress_kind kind;
	bool is_built_in;
	uint32_t process; /* only for this process's leaks; 0: for all */
	uint64_t blocks, bytes,
		n_stacks; /* what it matched; counted by the caller of torsh_suppress_match */
};

struct suppress {
	struct suppress_rule *rules;
	size_t n, n_room;
};

/*
 * Add the rules of a file. Returns 0, -errno, or -EINVAL with *bad_line (from 1) at a syntax
 * error.
 */
int torsh_suppress_read(struct suppress *suppress, const char *path, unsigned *bad_line);

/* Add the rules of a text. Returns 0 or -EINVAL with *bad_line. */
int torsh_suppress_parse(struct suppress *suppress, const char *text, unsigned *bad_line);

/* Free the rules. */
void torsh_suppress_free(struct suppress *suppress);

/* Add the built-in rules: default.suppressions. */
void torsh_suppress_add_built_in(struct suppress *suppress);

/* Reset the counts of matches, so that leaks can be found a second time. */
void torsh_suppress_restart(struct suppress *suppress);

/* The same, and remove all rules but the first n_rules: those that programs define themselves. */
void torsh_suppress_restart_with(struct suppress *suppress, size_t n_rules);

/* Returns "leak", "kept", "import" or "within". */
const char *torsh_suppress_kind(const struct suppress_rule *rule);

/* Returns true if the pattern matches the name. */
bool torsh_suppress_matches(const char *pattern, const char *name);

/*
 * Returns the index of the first rule of that kind, for leaks of this process, that matches, or
 * -1.
 */
long torsh_suppress_find(const struct suppress *suppress, enum suppress_kind kind, uint32_t process,
			 const char *name);

/* Returns true if rules of that kind, for leaks of this process, are not only built-in ones. */
bool torsh_suppress_has_own(const struct suppress *suppress, enum suppress_kind kind,
			    uint32_t process);

/*
 * Add the rules that a process defines itself (the program's __lsan_default_suppressions), unless
 * they are there already; text may be NULL. An invalid line ends the text, which is reported on
 * stderr.
 */
void torsh_suppress_add_own(struct suppress *suppress, uint32_t process, const char *program,
			    const char *text);

#endif
