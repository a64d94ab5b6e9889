/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh brief: what costs, and what to try, for a person or a coding assistant. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/command/command.h"
#include "tools/command/report/overview_reading.h"
#include "tools/report/brief/brief.h"

#define SITES_NAMED 1

static const char doc[] =
	"Write what a person, or a coding assistant, needs to make the program faster or smaller: at most 6 KiB of Markdown.\v"
	"It has the run in five lines, the three most costly things with the lines of code that they come from, what to try, by "
	"what it gains at most, what was ruled out, and the commands that check a change. A line is quoted from the file on this "
	"machine, unless that has changed since. What is a share of the steps' time gains at most 1 / (1 - share), by Amdahl's "
	"law.";

enum { KEY_JSON = 0x3000 };

static const struct argp_option own_options[] = {
	{"output", 'o', "FILE", 0, "write there; - is standard output", 0},
	{"json", KEY_JSON, NULL, 0, "JSON instead of Markdown", 0},
	{0},
};

struct brief_options {
	const char *output; /* NULL: standard output */
	bool is_json;
};

static error_t parse_own(int key, char *argument, struct argp_state *state)
{
	struct brief_options *own = state->input;

	if (key == 'o')
		own->output = strcmp(argument, "-") == 0 ? NULL : argument;
	else if (key == KEY_JSON)
		own->is_json = true;
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

static void write_brief(const struct brief_options *own, const struct brief *brief)
{
	FILE *out = own->output ? fopen(own->output, "w") : stdout;

	if (!out)
		torsh_die("%s can't be written: %s", own->output, strerror(errno));
	if (own->is_json)
		torsh_brief_json(out, brief);
	else
		torsh_brief_text(out, brief);
	if (own->output && fclose(out))
		torsh_die("%s can't be written: %s", own->output, strerror(errno));
}

int torsh_command_brief(int argc, char **argv)
{
	struct read_options options = {0};
	struct brief_options own = {0};
	struct overview_reading of;
	struct brief brief;

	torsh_options_parse_page(argc, argv, doc, own_options, parse_own, &own, &options);
	options.order = ORDER_LOST;
	torsh_overview_read(&of, &options, SITES_NAMED);
	options.order = ORDER_BYTES;
	torsh_overview_read_timeline(&of, &options, true);
	torsh_overview_read_lists(&of, &options, SITES_NAMED);
	torsh_brief_make(&brief, &of.overview, torsh_overview_prepass(&of));
	write_brief(&own, &brief);
	torsh_brief_free(&brief);
	torsh_overview_close(&of, &options);
	return TORSH_EXIT_DONE;
}
