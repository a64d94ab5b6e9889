/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * torsh report: a recording on one screen (tools/report/screen/), or on a page with everything
 * (tools/report/overview_text.c and overview_json.c).
 */
#include "tools/base/die.h"
#include "tools/command/command.h"
#include "tools/command/report/overview_reading.h"
#include "tools/report/screen/report_screen.h"
#include "tools/report/tree.h"

#define PAGE_LIMIT 5
#define SCREEN_LIMIT 20 /* as in torsh leaks, so that the counts are equal */

static const char doc[] =
	"Show a recording on one screen: what leaked, who held memory at the peak, where time went, what devices did, what is "
	"inefficient, and what was lost. With --verbose on a page: also who allocates in vain, sizes, threads, all processes, "
	"and what the numbers rest on.";

enum { KEY_TREE = 1, KEY_NO_TIMELINE, KEY_ALL };

struct own_options {
	bool is_tree, without_timeline, is_all;
};

static const struct argp_option own_options[] = {
	{"tree", KEY_TREE, NULL, 0,
	 "only the tree of the processes: who started whom, when, and how each ended", 0},
	{"all", KEY_ALL, NULL, 0, "the page with everything, as --verbose", 0},
	{"no-timeline", KEY_NO_TIMELINE, NULL, 0,
	 "leave out devices and what is inefficient, for which the timeline is read: a second or so for each million kernels",
	 0},
	{0},
};

static error_t parse_own(int key, char *argument, struct argp_state *state)
{
	struct own_options *own = state->input;

	(void)argument;
	if (key == KEY_TREE)
		own->is_tree = true;
	else if (key == KEY_ALL)
		own->is_all = true;
	else if (key == KEY_NO_TIMELINE)
		own->without_timeline = true;
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

int torsh_command_report(int argc, char **argv)
{
	struct read_options options = {0};
	struct overview_reading of;
	struct own_options own = {0};
	bool is_tree, is_page;

	torsh_options_parse(argc, argv, doc, own_options, parse_own, &own, &options);
	is_tree = own.is_tree && !options.is_json;
	is_page = options.is_json || options.is_verbose || own.is_all;
	torsh_overview_read(&of, &options, is_page ? PAGE_LIMIT : SCREEN_LIMIT);
	if (!own.without_timeline && !is_tree)
		torsh_overview_read_timeline(&of, &options, true);
	if (is_page && !is_tree)
		torsh_overview_read_lists(&of, &options, PAGE_LIMIT);
	if (is_tree)
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
