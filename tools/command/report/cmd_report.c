/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * torsh report: a recording on one screen (tools/report/screen/), or on a page with everything
 * (tools/report/overview_text.c and overview_json.c).
 */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/findings_json.h"
#include "tools/base/die.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/command/export/export_timeline.h"
#include "tools/command/report/overview_reading.h"
#include "tools/report/screen/report_screen.h"
#include "tools/report/tree.h"

#define PAGE_LIMIT 5
#define SCREEN_LIMIT 20 /* as in torsh leaks, so that the counts are equal */

static const char doc[] =
	"Show a recording on one screen: what leaked, who held memory at the peak, where time went, what devices did, what is "
	"inefficient, and what was lost. With --verbose on a page: also who allocates in vain, sizes, threads, all processes, "
	"and what the numbers rest on.";

enum { KEY_TREE = 1, KEY_NO_TIMELINE, KEY_ALL, KEY_OPEN, KEY_STEPS };

struct own_options {
	bool is_tree, without_timeline, is_all;
	size_t open; /* number of a finding, from 1; 0: none */
	struct critical_steps steps;
};

static const struct argp_option own_options[] = {
	{"tree", KEY_TREE, NULL, 0,
	 "only the tree of the processes: who started whom, when, and how each ended", 0},
	{"all", KEY_ALL, NULL, 0, "the page with everything, as --verbose", 0},
	{"open", KEY_OPEN, "N", 0,
	 "write the page of torsh html, and print its address at what shows finding N of --verbose or --json",
	 0},
	{"steps", KEY_STEPS, "A[-B]", 0,
	 "the critical path of that step, or of these, instead of all after the first", 0},
	{"no-timeline", KEY_NO_TIMELINE, NULL, 0,
	 "leave out devices and what is inefficient, for which the timeline is read: a second or so for each million kernels",
	 0},
	{0},
};

static size_t parse_number(const char *argument, const struct argp_state *state)
{
	char *end;
	unsigned long number = strtoul(argument, &end, 10);

	if (*argument < '1' || *argument > '9' || *end || number > N_RULES * FINDINGS_A_RULE)
		argp_error(state, "--open is the number of a finding, from 1: %s", argument);
	return number;
}

static error_t parse_own(int key, char *argument, struct argp_state *state)
{
	struct own_options *own = state->input;

	if (key == KEY_OPEN)
		own->open = parse_number(argument, state);
	else if (key == KEY_STEPS) {
		torsh_argument_steps(state, argument, &own->steps.first, &own->steps.last);
		own->steps.is_some = true;
	} else if (key == KEY_TREE)
		own->is_tree = true;
	else if (key == KEY_ALL)
		own->is_all = true;
	else if (key == KEY_NO_TIMELINE)
		own->without_timeline = true;
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

/* Print the address of a file, as RFC 3986 has it. */
static void print_address(const char *path)
{
	fputs("file://", stdout);
	for (; *path; path++) {
		if (isalnum((unsigned char)*path) || strchr("/-._~", *path))
			putchar(*path);
		else
			printf("%%%02X", (unsigned char)*path);
	}
}

/* Write the page, and print its address at the finding. */
static void open_finding(struct overview_reading *of, size_t number)
{
	const struct analysis *analysis = &of->overview.analysis;
	struct trace_window window = {.to_ns = UINT64_MAX};
	char whole[PATH_MAX], *path, *anchor;

	if (number > analysis->n)
		torsh_die("there is no finding %zu: %s has %zu", number, of->overview.path,
			  analysis->n);
	path = torsh_page_name(of->overview.recording->path);
	anchor = torsh_finding_anchor(&analysis->findings[number - 1], number - 1);
	torsh_timeline_export(torsh_trace_format("html"), &window, path, &of->reading);
	if (!realpath(path, whole))
		torsh_die("%s can't be found after it was written", path);
	print_address(whole);
	puts(anchor);
	free(path);
	free(anchor);
}

int torsh_command_report(int argc, char **argv)
{
	struct read_options options = {0};
	struct overview_reading of;
	struct own_options own = {0};
	bool is_tree, is_page;

	torsh_options_parse(argc, argv, doc, own_options, parse_own, &own, &options);
	if (own.steps.is_some && (own.is_tree || own.without_timeline || own.open))
		torsh_die(
			"--steps is about the critical path, which --tree, --no-timeline and --open leave out");
	is_tree = own.is_tree && !options.is_json;
	is_page = options.is_json || options.is_verbose || own.is_all;
	if (!is_page && !options.has_order)
		options.order = ORDER_LOST;
	torsh_overview_read(&of, &options, is_page ? PAGE_LIMIT : SCREEN_LIMIT);
	if (own.open || (!own.without_timeline && !is_tree))
		torsh_overview_read_timeline(&of, &options, true);
	if (!own.open && !own.without_timeline && !is_tree)
		torsh_overview_read_path(&of, &own.steps);
	if (is_page && !is_tree && !own.open)
		torsh_overview_read_lists(&of, &options, PAGE_LIMIT);
	if (own.open)
		open_finding(&of, own.open);
	else if (is_tree)
		torsh_tree_print(stdout, &of.overview);
	else if (options.is_json)
		torsh_overview_json(&of.overview);
	else if (is_page)
		torsh_overview_text(&of.overview);
	else
		torsh_screen_print(&of.overview, torsh_overview_prepass(&of));
	torsh_overview_close(&of, &options);
	return TORSH_EXIT_DONE;
}
