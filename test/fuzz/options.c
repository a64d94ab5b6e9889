/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The command line: words between NULs as reading commands take them, and each word as a size, a
 * time, a number and steps.
 */
#include "tools/command/arguments.h"
#include "tools/command/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 16

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static FILE *complaints;
static char complaint[65536];

/* Has there been a complaint since the last call? */
static bool is_refused(void)
{
	bool is_some = ftell(complaints) > 0;

	rewind(complaints);
	return is_some;
}

static void check_values(char *word)
{
	char name[] = "fuzz";
	struct argp_state state = {.root_argp = &torsh_read_argp,
				   .flags = ARGP_NO_EXIT,
				   .err_stream = complaints,
				   .name = name};
	uint64_t value, first, last;

	is_refused();
	value = torsh_argument_size(&state, "size", word);
	if (!is_refused() && value > INT64_MAX)
		abort();
	value = torsh_argument_duration(&state, "time", word);
	if (!is_refused() && value > INT64_MAX)
		abort();
	torsh_argument_number(&state, "number", word);
	if (!is_refused() && strspn(word, "0123456789") != strlen(word))
		abort();
	torsh_argument_steps(&state, word, &first, &last);
	if (!is_refused() &&
	    (first > last || strspn(word, "0123456789-") != strlen(word) || *word == '-'))
		abort();
}

/* Of --suppress the file would be read, and its absence ends the process. */
static bool reads_file(const char *word)
{
	return strncmp(word, "--su", 4) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	char *copy = calloc(1, n_bytes + 1), name[] = "fuzz", *words[WORDS_MAX + 2] = {name};
	struct read_options options = {0};
	int n = 1;

	complaints = complaints ? complaints : fmemopen(complaint, sizeof(complaint), "w");
	if (!copy || !complaints)
		abort();
	if (n_bytes)
		memcpy(copy, bytes, n_bytes);
	for (char *word = copy; word < copy + n_bytes && n <= WORDS_MAX; word += strlen(word) + 1) {
		if (reads_file(word))
			break;
		words[n++] = word;
		check_values(word);
	}
	argp_parse(&torsh_read_argp, n, words, ARGP_NO_ERRS | ARGP_NO_EXIT | ARGP_NO_HELP, NULL,
		   &options);
	free(copy);
	return 0;
}
