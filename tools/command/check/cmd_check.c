/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh check: compares a recording with budgets, for continuous integration. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/json_writer.h"
#include "tools/base/size.h"
#include "tools/command/check/check_devices.h"
#include "tools/command/check/outcomes.h"
#include "tools/command/command.h"
#include "tools/command/arguments.h"
#include "tools/command/reading.h"
#include "tools/frames/blamed_line.h"
#include "tools/frames/frame_kind.h"
#include "tools/frames/short_name.h"
#include "tools/memory/growth/growth.h"
#include "tools/memory/leaks/rules/growth_rules.h"
#include "tools/memory/leaks/leaks.h"
#include "tools/memory/peak.h"
#include "tools/recording/losses.h"

static const char doc[] =
	"Compare a recording with budgets. Exit status 1 when one of them is broken.\v"
	"Leaks are those that `torsh leaks` reports, summed over all processes; the peak is that of "
	"all processes together (as `torsh peak` shows it), the resident set that of the process with "
	"the highest. Budgets of devices are for memory allocated from CUDA, as `torsh leaks` and `torsh peak --device` have it, and for "
	"what devices did: of the device with the highest, of leaks and refusals the sum; with --device of that one alone. "
	"A missing figure counts as broken, and a recording with losses fails: --allow-loss accepts its figures, and "
	"--max-dropped is the number of events that may be lost.";

/* BUDGET(name, option, argument, compared value); the argument is also the unit */
#define BUDGETS                                                                               \
	BUDGET(leak, "max-leak", "SIZE", "bytes leaked")                                      \
	BUDGET(growth, "max-growth", "SIZE", "bytes of growth a step")                        \
	BUDGET(peak, "max-peak", "SIZE", "bytes of heap at the peak")                         \
	BUDGET(rss, "max-rss", "SIZE", "bytes of the highest resident set")                   \
	BUDGET(dropped, "max-dropped", "N", "events dropped")                                 \
	BUDGET(device_peak, "max-device-peak", "SIZE", "bytes of a device at the peak")       \
	BUDGET(device_leak, "max-device-leak", "SIZE", "bytes of devices leaked")             \
	BUDGET(device_refused, "max-device-refused", "N", "allocations that devices refused") \
	BUDGET(device_time, "max-device-time", "TIME",                                        \
	       "time of a device's kernels, copies and memsets")

enum budget_name {
#define BUDGET(name, option, argument, text) BUDGET_##name,
	BUDGETS
#undef BUDGET
		N_BUDGETS
};

struct budget {
	const char *name, *option, *text, *unit;
	bool is_set, is_known;
	uint64_t limit, value;
	char *culprit; /* the line with the largest part of the value; NULL: unknown */
	struct device_figure figure; /* of device budgets: where the value is from */
	double variance; /* of the value; 0: it is exact, or its variance isn't known */
};

struct budgets {
	struct budget items[N_BUDGETS];
	const char *device; /* NULL: all */
	bool may_lack; /* losses are accepted */
	char *missing; /* the sentence about losses; NULL: none */
	bool is_lacking; /* more is missing than accepted */
	const char *baseline, *junit; /* paths; NULL: none */
	bool is_github;
	struct growth_limits limits;
	struct outcomes outcomes;
};

#define KEY_BUDGET 0x2000
#define KEY_DEVICE (KEY_BUDGET + N_BUDGETS)
#define KEY_ALLOW_LOSS (KEY_DEVICE + 1)
#define KEY_BASELINE (KEY_DEVICE + 2)
#define KEY_GITHUB (KEY_DEVICE + 3)
#define KEY_JUNIT (KEY_DEVICE + 4)

static const struct argp_option own_options[] = {
#define BUDGET(name, option, argument, text) \
	{option, KEY_BUDGET + BUDGET_##name, argument, 0, "most " text, 0},
	BUDGETS
#undef BUDGET
	{"device", KEY_DEVICE, "NAME", 0,
	 "budgets of devices are for this one: cuda:0, managed, pinned, registered or imported", 0},
	{"allow-loss", KEY_ALLOW_LOSS, NULL, 0, "compare also where the recording lost something",
	 0},
	{"baseline", KEY_BASELINE, "OLD", 0,
	 "an earlier recording: with --max-growth=2% leaks, peak, growth a step and step time may be "
	 "so much above its own",
	 0},
	{"github", KEY_GITHUB, NULL, 0, "print what is broken as annotations of a GitHub workflow",
	 0},
	{"junit", KEY_JUNIT, "FILE", 0, "write the results as a JUnit file too", 0},
	{0},
};

static bool is_set(const struct budgets *budgets, enum budget_name first, enum budget_name last)
{
	for (int i = first; i <= (int)last; i++) {
		if (budgets->items[i].is_set)
			return true;
	}
	return false;
}

static uint64_t parse_limit(struct argp_state *state, const struct budget *budget,
			    const char *argument)
{
	if (strcmp(budget->unit, "N") == 0)
		return torsh_argument_number(state, budget->option, argument);
	if (strcmp(budget->unit, "TIME") == 0)
		return torsh_argument_duration(state, budget->option, argument);
	return torsh_argument_size(state, budget->option, argument);
}

static void check_budgets(struct argp_state *state, const struct budgets *budgets)
{
	if (!budgets->baseline != !budgets->limits.of_all.is_set)
		argp_error(state, "--baseline and --max-growth=PERCENT belong together");
	if (!is_set(budgets, 0, N_BUDGETS - 1) && !budgets->baseline)
		argp_error(state, "no budget is given: nothing to check");
	if (budgets->device && !is_set(budgets, BUDGET_device_peak, BUDGET_device_time))
		argp_error(state, "--device is for budgets of devices, and none is given");
	if (budgets->device && budgets->items[BUDGET_device_time].is_set &&
	    strncmp(budgets->device, "cuda:", 5) != 0)
		argp_error(state, "--max-device-time is of a device like cuda:0, not \"%s\"",
			   budgets->device);
}

static error_t parse_form(int key, char *argument, struct argp_state *state)
{
	struct budgets *budgets = state->input;

	switch (key) {
	case KEY_ALLOW_LOSS:
		budgets->may_lack = true;
		return 0;
	case KEY_BASELINE:
		budgets->baseline = argument;
		return 0;
	case KEY_GITHUB:
		budgets->is_github = true;
		return 0;
	case KEY_JUNIT:
		budgets->junit = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_budget(int key, char *argument, struct argp_state *state)
{
	struct budgets *budgets = state->input;
	struct budget *budget;

	if (key == ARGP_KEY_END)
		check_budgets(state, budgets);
	if (key == KEY_DEVICE) {
		budgets->device = argument;
		return 0;
	}
	if (key > KEY_DEVICE)
		return parse_form(key, argument, state);
	if (key < KEY_BUDGET || key >= KEY_BUDGET + N_BUDGETS)
		return ARGP_ERR_UNKNOWN;
	if (key == KEY_BUDGET + BUDGET_growth && torsh_growth_is_percent(argument)) {
		budgets->limits.of_all = torsh_growth_percent(state, "max-growth", argument);
		return 0;
	}
	budget = &budgets->items[key - KEY_BUDGET];
	budget->is_set = true;
	budget->limit = parse_limit(state, budget, argument);
	return 0;
}

static bool is_kept(const struct budget *budget)
{
	return budget->is_known && budget->value <= budget->limit;
}

static void forget_heap(struct budget *budgets, const struct recorded_process *process)
{
	for (int i = BUDGET_leak; i <= BUDGET_peak; i++) {
		budgets[i].is_known = false;
		snprintf(budgets[i].figure.reason, sizeof(budgets[i].figure.reason),
			 "the heap of pid %" PRIu32 " was not recorded", process->pid);
	}
}

/*
 * Returns "copy_history leaky.c:24, 24.6 MiB" for the site with most bytes, or "64.0 KiB a step"
 * for growth.
 */
static char *name_culprit(struct allocation_sites *sites, struct symbols *symbols, bool is_growth)
{
	const struct allocation_site *site;
	struct blamed_line line;
	char bytes[SIZE_TEXT_BYTES], *function, *place, *culprit;
	const char *here = torsh_working_directory();

	if (!sites->n)
		return NULL;
	torsh_sites_sort(sites, ORDER_BYTES);
	torsh_sites_name(sites, symbols, 1);
	site = &sites->items[0];
	line = torsh_blamed_line(site->frames, site->n_frames, here);
	if (line.innermost == FRAME_NONE)
		return NULL;
	function = torsh_short_frame(site->frames[line.innermost]);
	place = torsh_short_place(site->frames[line.innermost], here);
	torsh_size_human(is_growth ? (uint64_t)(torsh_growth_rate(site).bytes + 0.5) : site->bytes,
			 bytes);
	culprit =
		torsh_need_text("%s %s, %s%s", function, place, bytes, is_growth ? " a step" : "");
	free(function);
	free(place);
	return culprit;
}

/* Store the growth of all sites together, in bytes per step. */
static void measure_growth(struct budget *budget, const struct reading *reading,
			   const struct suppress *suppress)
{
	struct growth growth = {0};

	torsh_growth_find(&growth, reading->processes, reading->n_processes);
	torsh_growth_suppress(&growth, suppress, reading->symbols);
	budget->is_known = growth.is_enough;
	if (!budget->is_known)
		snprintf(budget->figure.reason, sizeof(budget->figure.reason),
			 "there were too few steps to see growth");
	budget->value = (uint64_t)(torsh_growth_bytes(&growth) + 0.5);
	if (!is_kept(budget))
		budget->culprit = name_culprit(&growth.found, reading->symbols, true);
	torsh_growth_free(&growth);
}

static void measure_host(struct budget *budgets, const struct reading *reading,
			 struct read_options *options)
{
	struct peak peak =
		torsh_peak_choose(reading->recording, reading->processes, reading->n_processes);
	struct leaks leaks = {.with_helpers = options->is_verbose};

	torsh_leaks_find(&leaks, reading->processes, reading->n_processes, reading->symbols,
			 &options->suppress);
	budgets[BUDGET_leak].value = leaks.bytes;
	budgets[BUDGET_peak].value = peak.bytes;
	for (int i = BUDGET_leak; i <= BUDGET_dropped; i++)
		budgets[i].is_known = true;
	if (torsh_recording_sampled_every(reading->processes, reading->n_processes)) {
		budgets[BUDGET_leak].variance = torsh_sites_variance(&leaks.found).bytes;
		if (peak.is_known)
			budgets[BUDGET_peak].variance =
				torsh_peak_variance(&peak, reading->recording).bytes;
	}
	if (budgets[BUDGET_leak].is_set && !is_kept(&budgets[BUDGET_leak]))
		budgets[BUDGET_leak].culprit = name_culprit(&leaks.found, reading->symbols, false);
	torsh_leaks_free(&leaks);
	if (budgets[BUDGET_peak].is_set && !is_kept(&budgets[BUDGET_peak]) && peak.is_known) {
		struct allocation_sites sites = {0};

		torsh_peak_collect(&sites, &peak, reading->recording);
		budgets[BUDGET_peak].culprit = name_culprit(&sites, reading->symbols, false);
		torsh_sites_free(&sites);
	}
	if (budgets[BUDGET_growth].is_set)
		measure_growth(&budgets[BUDGET_growth], reading, &options->suppress);
	for (size_t i = 0; i < reading->n_processes; i++) {
		const struct recorded_process *process = reading->processes[i];

		budgets[BUDGET_dropped].value += process->dropped;
		if (process->rss_peak_bytes > budgets[BUDGET_rss].value)
			budgets[BUDGET_rss].value = process->rss_peak_bytes;
		if (!torsh_recording_has_heap(process))
			forget_heap(budgets, process);
		if (!process->has_rss_peak)
			budgets[BUDGET_rss].is_known = false;
	}
}

static void take_figure(struct budget *budget, const struct device_figure *figure)
{
	budget->figure = *figure;
	budget->is_known = figure->is_known;
	budget->value = figure->value;
}

/* The timeline is read only if a budget needs it. */
static void measure_devices(struct budgets *budgets, const struct reading *reading,
			    struct read_options *options)
{
	struct device_figures figures = {0};

	if (is_set(budgets, BUDGET_device_peak, BUDGET_device_refused))
		torsh_check_devices_memory(&figures, reading, options, budgets->device);
	if (budgets->items[BUDGET_device_time].is_set)
		torsh_check_devices_time(&figures, reading, budgets->device);
	take_figure(&budgets->items[BUDGET_device_peak], &figures.peak);
	take_figure(&budgets->items[BUDGET_device_leak], &figures.leak);
	take_figure(&budgets->items[BUDGET_device_refused], &figures.refused);
	take_figure(&budgets->items[BUDGET_device_time], &figures.time_ns);
}

/* Dropped events have a separate budget, if one is given. */
static void measure_losses(struct budgets *budgets, const struct reading *reading)
{
	const struct recording *recording = reading->recording;
	bool is_over = !recording->is_being_written && !recording->snapshot_of;
	struct losses losses;

	torsh_losses_sum(&losses, reading->processes, reading->n_processes);
	budgets->missing =
		torsh_losses_sentence(recording, reading->processes, reading->n_processes);
	budgets->is_lacking = recording->n_bad_rows ||
			      (is_over && (recording->is_truncated || !recording->is_complete));
	for (size_t i = 0; i < losses.n; i++) {
		if (!losses.items[i].is_of_events || !budgets->items[BUDGET_dropped].is_set)
			budgets->is_lacking = true;
	}
	budgets->is_lacking = budgets->is_lacking && !budgets->may_lack;
	torsh_losses_free(&losses);
}

static const char *text_of(const struct budget *budget, uint64_t value, char *out)
{
	if (strcmp(budget->unit, "N") == 0)
		return torsh_size_grouped(value, out);
	return strcmp(budget->unit, "TIME") == 0 ? torsh_size_duration(value, out)
						 : torsh_size_exact(value, out);
}

static bool has_interval(const struct budget *budget)
{
	return budget->is_known && budget->variance > 0;
}

static void print_interval(const struct budget *budget)
{
	struct estimate_interval of = torsh_estimate_interval(budget->value, budget->variance);
	char low[SIZE_TEXT_BYTES], high[SIZE_TEXT_BYTES];

	printf(" (estimated, 95 %%: %s to %s)", torsh_size_human(of.low, low),
	       torsh_size_human(of.high, high));
}

static void print_text(const struct budget *budget)
{
	char value[SIZE_TEXT_BYTES], limit[SIZE_TEXT_BYTES];
	const char *device = budget->figure.device, *reason = budget->figure.reason;

	printf("%-6s %-8s %s: %s%s%s, budget %s", is_kept(budget) ? "ok" : "BROKEN", budget->name,
	       budget->text, budget->is_known ? text_of(budget, budget->value, value) : "not known",
	       *device ? " of " : "", device, text_of(budget, budget->limit, limit));
	if (*reason)
		printf(" (%s)", reason);
	if (has_interval(budget))
		print_interval(budget);
	putchar('\n');
	if (budget->culprit)
		printf("       mostly %s\n", budget->culprit);
}

static void emit_check(struct json_writer *json, const struct budget *budget)
{
	const char *device = budget->figure.device, *reason = budget->figure.reason;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "name", budget->name);
	torsh_json_put_u64(json, "limit", budget->limit);
	torsh_json_put_known(json, "value", budget->is_known, budget->value);
	torsh_json_put_bool(json, "passed", is_kept(budget));
	if (has_interval(budget)) {
		struct estimate_interval of =
			torsh_estimate_interval(budget->value, budget->variance);

		torsh_json_begin_array(json, "interval");
		torsh_json_put_u64(json, NULL, of.low);
		torsh_json_put_u64(json, NULL, of.high);
		torsh_json_end_array(json);
	}
	torsh_json_put_text(json, "device", *device ? device : NULL);
	torsh_json_put_text(json, "reason", *reason ? reason : NULL);
	torsh_json_end_object(json);
}

static bool are_all_kept(const struct budgets *of)
{
	for (size_t i = 0; i < N_BUDGETS; i++) {
		if (of->items[i].is_set && !is_kept(&of->items[i]))
			return false;
	}
	return !of->is_lacking && torsh_outcomes_are_kept(&of->outcomes);
}

/* Collect a sentence per budget, and the comparison with the baseline. */
static void collect_outcomes(struct budgets *of, const struct reading *reading,
			     struct read_options *options)
{
	char value[SIZE_TEXT_BYTES], limit[SIZE_TEXT_BYTES];

	for (size_t i = 0; i < N_BUDGETS; i++) {
		const struct budget *budget = &of->items[i];

		if (budget->is_set)
			torsh_outcomes_add(
				&of->outcomes, budget->name, is_kept(budget),
				torsh_need_text("%s: %s, budget %s", budget->text,
						budget->is_known
							? text_of(budget, budget->value, value)
							: "not known",
						text_of(budget, budget->limit, limit)));
	}
	if (of->missing)
		torsh_outcomes_add(&of->outcomes, "recording", !of->is_lacking,
				   torsh_need_text("%s", of->missing));
	if (of->baseline)
		torsh_outcomes_compare(&of->outcomes, &of->limits, of->baseline, reading, options);
}

static void print_checks(const struct budgets *of, uint64_t sampled_every)
{
	char rate[SIZE_TEXT_BYTES];

	if (sampled_every)
		printf("the heap was sampled, one block in %s on average: leak, growth and peak are estimates\n",
		       torsh_size_human(sampled_every, rate));
	if (of->missing)
		printf("%s%s\n", of->is_lacking ? "BROKEN " : "", of->missing);
	for (size_t i = 0; i < N_BUDGETS; i++) {
		if (of->items[i].is_set)
			print_text(&of->items[i]);
	}
	torsh_outcomes_print(&of->outcomes);
}

static void print_json(const struct budgets *of, const struct reading *reading)
{
	uint64_t sampled_every =
		torsh_recording_sampled_every(reading->processes, reading->n_processes);
	struct json_writer json;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_put_u64(&json, "pid", reading->processes[0]->pid);
	torsh_json_put_bool(&json, "passed", are_all_kept(of));
	if (sampled_every)
		torsh_json_put_u64(&json, "sampled_every", sampled_every);
	torsh_json_put_bool(&json, "complete", !of->missing);
	torsh_json_put_text(&json, "missing", of->missing);
	torsh_json_begin_array(&json, "checks");
	for (size_t i = 0; i < N_BUDGETS; i++) {
		if (of->items[i].is_set)
			emit_check(&json, &of->items[i]);
	}
	torsh_json_end_array(&json);
	torsh_outcomes_emit(&json, &of->outcomes);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
}

int torsh_command_check(int argc, char **argv)
{
	struct read_options options = {0};
	struct budgets budgets = {
		.items =
			{
#define BUDGET(name, option, argument, text) {#name, option, text, .unit = argument},
				BUDGETS
#undef BUDGET
			},
	};
	struct reading reading;
	bool are_kept;

	torsh_options_parse(argc, argv, doc, own_options, parse_budget, &budgets, &options);
	if (!budgets.items[BUDGET_growth].is_set && !budgets.baseline)
		options.without = RECORDING_MOMENTS;
	torsh_reading_open(&reading, &options);
	measure_host(budgets.items, &reading, &options);
	measure_devices(&budgets, &reading, &options);
	measure_losses(&budgets, &reading);
	if (reading.recording->is_being_written)
		torsh_warn("this is being recorded still: budgets are compared with what is there");
	if (reading.recording->n_pauses)
		torsh_warn(
			"recording was paused: blocks that were allocated meanwhile are not counted");
	if (reading.n_unfollowed)
		torsh_warn(
			"budgets are compared with what was recorded, not of programs that were not followed");
	collect_outcomes(&budgets, &reading, &options);
	if (options.is_json)
		print_json(&budgets, &reading);
	else if (budgets.is_github)
		torsh_outcomes_print_github(&budgets.outcomes);
	else
		print_checks(&budgets,
			     torsh_recording_sampled_every(reading.processes, reading.n_processes));
	if (budgets.junit)
		torsh_outcomes_write_junit(&budgets.outcomes, budgets.junit);
	are_kept = are_all_kept(&budgets);
	torsh_outcomes_free(&budgets.outcomes);
	free(budgets.missing);
	for (size_t i = 0; i < N_BUDGETS; i++)
		free(budgets.items[i].culprit);
	torsh_reading_close(&reading, &options);
	return are_kept ? TORSH_EXIT_DONE : TORSH_EXIT_FAILED;
}
