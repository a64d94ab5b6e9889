/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/arguments.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/live/live.h"
#include "tools/recording/read.h"

#define NAMES_BYTES 256

uint64_t torsh_argument_size(struct argp_state *state, const char *option, const char *text)
{
	uint64_t bytes = 0;

	if (torsh_size_parse(text, &bytes) < 0)
		argp_error(state, "--%s takes a size like 4096, 10K, 5M or 1G, not \"%s\"", option,
			   text);
	return bytes;
}

uint64_t torsh_argument_duration(struct argp_state *state, const char *option, const char *text)
{
	uint64_t ns = 0;

	if (torsh_duration_parse(text, &ns) < 0)
		argp_error(state, "--%s takes a time like 1.5s, 20ms or 300us, not \"%s\"", option,
			   text);
	return ns;
}

uint64_t torsh_argument_moment(struct argp_state *state, const char *option, const char *text)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
	char *end;
	double number = strtod(text, &end);

	for (size_t i = 0; end != text && i < sizeof(units) / sizeof(*units); i++) {
		/* Also false if number is NaN. */
		if (strcmp(end, units[i].unit) == 0 && number >= 0 && number * units[i].ns < 1e19)
			return (uint64_t)(number * units[i].ns);
	}
	argp_error(state, "--%s takes a time like 1.5s, 200ms or 30us, not \"%s\"", option, text);
	return 0;
}

void torsh_argument_age(struct argp_state *state, const char *option, const char *text,
			uint64_t *ns, uint64_t *n_steps)
{
	char *end;
	unsigned long long number = strtoull(text, &end, 10);

	*ns = *n_steps = 0;
	if (end != text && *text != '-' && number &&
	    (strcmp(end, "steps") == 0 || strcmp(end, "step") == 0)) {
		*n_steps = number;
		return;
	}
	if (torsh_duration_parse(text, ns) < 0)
		argp_error(state, "--%s takes an age as 10s, 200ms or 3steps, not \"%s\"", option,
			   text);
}

uint64_t torsh_argument_number(struct argp_state *state, const char *option, const char *text)
{
	char *end;
	unsigned long long number;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || !isdigit((unsigned char)*text) || *end)
		argp_error(state, "--%s takes a number, not \"%s\"", option, text);
	return number;
}

void torsh_argument_steps(struct argp_state *state, const char *text, uint64_t *first,
			  uint64_t *last)
{
	const char *number = text;
	char *end;

	errno = 0;
	*first = *last = strtoull(number, &end, 10);
	if (end != number && *end == '-') {
		number = end + 1;
		*last = strtoull(number, &end, 10);
	}
	if (errno || !isdigit((unsigned char)*text) || !isdigit((unsigned char)*number) || *end ||
	    *last < *first)
		argp_error(state, "--steps takes a number, or two as in 3-5, not \"%s\"", text);
}

/* Write "a, b or c". */
static void list_names(char *out, const char *const *names, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n && at < NAMES_BYTES; i++) {
		const char *separator = i == 0 ? "" : i + 1 < n ? ", " : " or ";

		at += (size_t)snprintf(out + at, NAMES_BYTES - at, "%s%s", separator, names[i]);
	}
}

size_t torsh_argument_choice(struct argp_state *state, const char *option, const char *const *names,
			     size_t n, const char *text)
{
	char list[NAMES_BYTES];

	for (size_t i = 0; i < n; i++) {
		if (strcmp(text, names[i]) == 0)
			return i;
	}
	list_names(list, names, n);
	argp_error(state, "--%s takes %s, not \"%s\"", option, list, text);
	return 0;
}

error_t torsh_argument_path(int key, const char *argument, struct argp_state *state,
			    const char **path)
{
	switch (key) {
	case ARGP_KEY_ARG:
		if (*path)
			argp_error(state, "one recording at a time: \"%s\" is too much", argument);
		*path = argument;
		return 0;
	case ARGP_KEY_END:
		if (*path)
			return 0;
		*path = torsh_recording_newest_here();
		if (!*path)
			argp_error(state, "which recording? Give its directory or file");
		torsh_warn("reading %s, the newest recording here", *path);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

error_t torsh_argument_process(int key, const char *argument, struct argp_state *state,
			       uint32_t *pid)
{
	switch (key) {
	case ARGP_KEY_ARG:
		if (*pid)
			argp_error(state, "one process at a time: \"%s\" is too much", argument);
		*pid = torsh_live_pid(argument);
		return 0;
	case ARGP_KEY_END:
		if (!*pid)
			argp_error(state, "which process? `torsh list` shows them");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}
