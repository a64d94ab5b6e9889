/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh diff: what changed between two recordings, or two sets of recordings. */
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/command/diff/diff_report.h"
#include "tools/command/diff/measure_reading.h"
#include "tools/command/run_sets.h"

static const char doc[] =
	"Show what changed between two recordings of a program: leaks, peak, growth, time and FLOPs.\v"
	"Several runs of each side are given with -- between them, options before it; a figure is then the median of its runs, and what is within "
	"the spread is no change: the largest distance of two runs of one side, or, where that is more, by how much sets "
	"of so few runs differ by chance (Student's t: about once in a hundred tables). Of single runs times that differ by 10 % or "
	"less are the same, of three runs on each side 2 %, other figures 1 %; rows with less than a hundredth of the time are "
	"left out. Stacks are matched by functions and file names, not by addresses, folders or lines: what moved to another "
	"line or into a file of another name, and a function that has another name in the same place, is the same and is shown as such. The page of --html has the tables and a flame graph of what "
	"changed in leaks, at the peak, in operators (by stack where stacks were recorded) or in modules. Exit status 1 when a "
	"figure grows beyond a limit.";

enum {
	KEY_MAX_GROWTH = 0x2000,
	KEY_MAX_LEAK,
	KEY_MAX_PEAK,
	KEY_MAX_STEP_TIME,
	KEY_MIN_BYTES,
	KEY_MIN_PERCENT,
	KEY_HTML
};

static const struct argp_option own_options[] = {
	{"max-growth", KEY_MAX_GROWTH, "PERCENT", 0,
	 "leaks, peak, growth a step and step time may each be so much above BEFORE: 2%", 0},
	{"max-leak", KEY_MAX_LEAK, "CHANGE", 0, "leaks may be so much above BEFORE: 2% or 10K", 0},
	{"max-peak", KEY_MAX_PEAK, "CHANGE", 0, "the heap's peak may: 2% or 10M", 0},
	{"max-step-time", KEY_MAX_STEP_TIME, "CHANGE", 0, "the median of the steps may: 5% or 2ms",
	 0},
	{"min-bytes", KEY_MIN_BYTES, "SIZE", 0, "a smaller difference is no change (1K)", 0},
	{"min-percent", KEY_MIN_PERCENT, "PERCENT", 0,
	 "a difference of less is no change, of times too", 0},
	{"html", KEY_HTML, NULL, 0, "write a page for a web browser, to diff.html or -o", 0},
	{"output", 'o', "FILE", 0, "write the page there; -: to standard output", 0},
	{0},
};

struct diff_options {
	struct run_sets sets;
	bool is_html;
	const char *output; /* file of the page; NULL: not given */
	struct growth_limits limits;
	struct change_rules rules;
	struct read_options common;
};

static error_t parse_own(int key, char *argument, struct argp_state *state)
{
	struct diff_options *options = state->input;

	switch (key) {
	case ARGP_KEY_ARG:
		torsh_run_sets_add(&options->sets, argument, state);
		options->common.path = argument;
		return 0;
	case ARGP_KEY_END:
		torsh_run_sets_check(&options->sets, state);
		if (options->output && !options->is_html)
			argp_error(state, "--output is where --html writes its page");
		return 0;
	case KEY_MAX_GROWTH:
		options->limits.of_all = torsh_growth_percent(state, "max-growth", argument);
		return 0;
	case KEY_MAX_LEAK:
		options->limits.items[COMPARE_leaked_bytes] =
			torsh_growth_limit(state, "max-leak", argument, COMPARE_leaked_bytes);
		return 0;
	case KEY_MAX_PEAK:
		options->limits.items[COMPARE_peak_bytes] =
			torsh_growth_limit(state, "max-peak", argument, COMPARE_peak_bytes);
		return 0;
	case KEY_MAX_STEP_TIME:
		options->limits.items[COMPARE_step_median_ns] = torsh_growth_limit(
			state, "max-step-time", argument, COMPARE_step_median_ns);
		return 0;
	case KEY_HTML:
		options->is_html = true;
		return 0;
	case 'o':
		options->output = argument;
		return 0;
	case KEY_MIN_BYTES:
		options->rules.min_bytes = torsh_argument_size(state, "min-bytes", argument);
		return 0;
	case KEY_MIN_PERCENT:
		options->rules.min_percent =
			torsh_growth_percent(state, "min-percent", argument).percent;
		options->rules.has_min_percent = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int torsh_command_diff(int argc, char **argv)
{
	struct diff_options own = {.rules.min_bytes = CHANGE_MIN_BYTES};
	struct read_options *options = &own.common;
	struct comparison comparison;
	struct diff_view view = {.comparison = &comparison, .limits = &own.limits};
	struct reading *readings;
	bool is_too_much;

	torsh_options_parse_several(argc, argv, "BEFORE AFTER\nBEFORE... -- AFTER...", doc,
				    own_options, parse_own, &own, options);
	readings = torsh_need_items(NULL, 0, own.sets.n, sizeof(*readings));
	torsh_comparison_begin(&comparison, own.sets.n_before, own.sets.n - own.sets.n_before,
			       &own.rules);
	for (size_t i = 0; i < own.sets.n; i++) {
		options->path = own.sets.paths[i];
		torsh_reading_open(&readings[i], options);
		torsh_measure_reading(&comparison, i, &readings[i], options);
		torsh_reading_drop(&readings[i]);
	}
	torsh_comparison_finish(&comparison);
	view.has_limit = options->has_limit;
	view.limit = options->limit;
	view.paths = (const char *const *)own.sets.paths;
	if (own.is_html)
		torsh_diff_html(&view, own.output ? own.output : "diff.html");
	else if (options->is_json)
		torsh_diff_json(&view);
	else
		torsh_diff_text(&view);
	is_too_much = torsh_growth_is_too_much(&own.limits, &comparison);
	torsh_comparison_free(&comparison);
	for (size_t i = 0; i < own.sets.n; i++)
		torsh_reading_close(&readings[i], options);
	free(readings);
	torsh_run_sets_free(&own.sets);
	return is_too_much ? TORSH_EXIT_FAILED : TORSH_EXIT_DONE;
}
