/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/leaks/suppress.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

/*
 * Match the pattern as far as end: from name's start unless is_free, to its end if is_tied. `*` is
 * tried from the shortest.
 */
static bool match_part(const char *pattern, const char *end, const char *name, bool is_free,
		       bool is_tied)
{
	const char *retry_pattern = is_free ? pattern : NULL, *retry_name = name;

	for (;;) {
		if (pattern < end && *pattern == '*') {
			retry_pattern = ++pattern;
			retry_name = name;
			continue;
		}
		if (pattern == end && (!is_tied || !*name))
			return true;
		if (pattern < end && *name && *pattern == *name) {
			pattern++;
			name++;
			continue;
		}
		if (!retry_pattern || !*retry_name)
			return false;
		pattern = retry_pattern;
		name = retry_name + 1;
		/* Most names are passed by here. */
		if (pattern < end)
			name = strchrnul(name, *pattern);
		retry_name = name;
	}
}

bool torsh_suppress_matches(const char *pattern, const char *name)
{
	const char *end = pattern + strlen(pattern);
	bool is_tied = end > pattern && end[-1] == '$', is_free;

	if (is_tied)
		end--;
	is_free = pattern == end || *pattern != '^';
	return match_part(is_free ? pattern : pattern + 1, end, name, is_free, is_tied);
}

static const char *const kinds[N_SUPPRESS_KINDS] = {
	[SUPPRESS_LEAK] = "leak",
	[SUPPRESS_KEPT] = "kept",
	[SUPPRESS_IMPORT] = "import",
};

void torsh_suppress_restart(struct suppress *suppress)
{
	for (size_t i = 0; suppress && i < suppress->n; i++) {
		struct suppress_rule *rule = &suppress->rules[i];

		rule->blocks = rule->bytes = rule->n_stacks = 0;
	}
}

const char *torsh_suppress_kind(const struct suppress_rule *rule)
{
	return kinds[rule->kind];
}

long torsh_suppress_find(const struct suppress *suppress, enum suppress_kind kind, uint32_t process,
			 const char *name)
{
	for (size_t i = 0; name && i < suppress->n; i++) {
		if (suppress->rules[i].kind == kind &&
		    (!suppress->rules[i].process || suppress->rules[i].process == process) &&
		    torsh_suppress_matches(suppress->rules[i].pattern, name))
			return (long)i;
	}
	return -1;
}

/* Removes the line's prefix with its colon; N_SUPPRESS_KINDS: an unknown prefix. */
static enum suppress_kind take_kind(char **line)
{
	size_t n = strcspn(*line, ":");
	int kind = 0;

	while (kind < N_SUPPRESS_KINDS &&
	       (strlen(kinds[kind]) != n || strncmp(*line, kinds[kind], n) != 0))
		kind++;
	*line += n + ((*line)[n] == ':');
	return (enum suppress_kind)kind;
}

/* One line without its newline. */
static int parse_line(struct suppress *suppress, char *line)
{
	enum suppress_kind kind;
	char *end;

	while (isspace((unsigned char)*line))
		line++;
	/* Only at the start or behind a blank: names of lambdas have a # in them. */
	for (char *at = line; *at; at++) {
		if (*at == '#' && (at == line || isspace((unsigned char)at[-1])))
			*at = '\0';
		if (!*at)
			break;
	}
	end = line + strlen(line);
	while (end > line && isspace((unsigned char)end[-1]))
		*--end = '\0';
	if (!*line)
		return 0;
	kind = take_kind(&line);
	if (kind == N_SUPPRESS_KINDS || !*line)
		return -EINVAL;
	suppress->rules = torsh_array_reserve(suppress->rules, suppress->n, &suppress->n_room,
					      sizeof(*suppress->rules));
	suppress->rules[suppress->n++] =
		(struct suppress_rule){.pattern = torsh_need(strdup(line)), .kind = kind};
	return 0;
}

int torsh_suppress_parse(struct suppress *suppress, const char *text, unsigned *bad_line)
{
	char *copy = torsh_need(strdup(text)), *rest = copy, *line;
	int rc = 0;

	for (*bad_line = 1; rc == 0 && (line = strsep(&rest, "\n")); ++*bad_line)
		rc = parse_line(suppress, line);
	if (rc < 0)
		--*bad_line;
	free(copy);
	return rc;
}

int torsh_suppress_read(struct suppress *suppress, const char *path, unsigned *bad_line)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t n_room = 0;
	int rc = 0;

	*bad_line = 0;
	if (!file)
		return -errno;
	while (rc == 0 && (errno = 0, getline(&line, &n_room, file) >= 0)) {
		++*bad_line;
		rc = parse_line(suppress, line);
	}
	if (rc == 0 && errno)
		rc = -errno;
	free(line);
	fclose(file);
	return rc;
}

/* The text of tools/memory/leaks/default.suppressions: made by the Makefile. */
extern const char torsh_default_suppressions[];

void torsh_suppress_add_built_in(struct suppress *suppress)
{
	size_t first = suppress->n;
	unsigned bad_line;

	if (torsh_suppress_parse(suppress, torsh_default_suppressions, &bad_line) < 0)
		torsh_die("the built-in suppressions are wrong in line %u", bad_line);
	for (size_t i = first; i < suppress->n; i++)
		suppress->rules[i].is_built_in = true;
}

void torsh_suppress_add_own(struct suppress *suppress, uint32_t process, const char *program,
			    const char *text)
{
	size_t first = suppress->n;
	unsigned bad_line;

	for (size_t i = 0; i < first; i++)
		if (suppress->rules[i].process == process)
			return;
	if (text && torsh_suppress_parse(suppress, text, &bad_line) < 0)
		torsh_warn(
			"%s: its __lsan_default_suppressions is not understood from line %u on: the rest is left out",
			program, bad_line);
	for (size_t i = first; i < suppress->n; i++)
		suppress->rules[i].process = process;
}

void torsh_suppress_free(struct suppress *suppress)
{
	for (size_t i = 0; i < suppress->n; i++)
		free(suppress->rules[i].pattern);
	free(suppress->rules);
	*suppress = (struct suppress){0};
}
