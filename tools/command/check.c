/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh check: a recording against budgets, for continuous integration. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/command/command.h"
#include "tools/command/options.h"
#include "tools/die.h"
#include "tools/profile/leaks.h"
#include "tools/profile/peak.h"
#include "tools/report/json.h"
#include "tools/size.h"

static const char doc[] =
	"Compare a recording with budgets. Exit status 1 when one of them is broken.\v"
	"Leaks are those that `torsh leaks` reports, summed over all processes; the peak is that of "
	"all processes together (as `torsh peak` shows it), the resident set that of the process with "
	"the highest. What isn't known counts as broken.";

/* BUDGET(name, option, argument, what is compared) */
#define BUDGETS                                                             \
	BUDGET(leak, "max-leak", "SIZE", "bytes leaked")                    \
	BUDGET(peak, "max-peak", "SIZE", "bytes of heap at the peak")       \
	BUDGET(rss, "max-rss", "SIZE", "bytes of the highest resident set") \
	BUDGET(dropped, "max-dropped", "N", "events dropped")

enum budget_name {
#define BUDGET(name, option, argument, text) BUDGET_##name,
	BUDGETS
#undef BUDGET
		N_BUDGETS
};

struct budget {
	const char *name, *option, *text;
	bool is_set, is_known, is_count;
	uint64_t limit, value;
};

#define KEY_BUDGET 0x2000

static const struct argp_option own_options[] = {
#define BUDGET(name, option, argument, text) {option, KEY_BUDGET + BUDGET_##name, argument, 0, "most " text, 0},
	BUDGETS
#undef BUDGET
	{0},
};

static error_t parse_budget(int key, char *argument, struct argp_state *state)
{
	struct budget *budgets = state->input;
	struct budget *budget;

	if (key == ARGP_KEY_END) {
		for (size_t i = 0; i < N_BUDGETS; i++) {
			if (budgets[i].is_set)
				return ARGP_ERR_UNKNOWN;
		}
		argp_error(state, "no budget is given: nothing to check");
	}
	if (key < KEY_BUDGET || key >= KEY_BUDGET + N_BUDGETS)
		return ARGP_ERR_UNKNOWN;
	budget = &budgets[key - KEY_BUDGET];
	budget->is_set = true;
	budget->limit = budget->is_count ? torsh_options_number(state, budget->option, argument)
					 : torsh_options_size(state, budget->option, argument);
	return 0;
}

static void measure(struct budget *budgets, const struct reading *reading, struct read_options *options)
{
	struct peak peak = torsh_peak_choose(reading->profile, reading->processes, reading->n_processes);
	struct leaks leaks = {0};

	torsh_leaks_find(&leaks, reading->processes, reading->n_processes, reading->symbols, &options->suppress);
	budgets[BUDGET_leak].value = leaks.bytes;
	budgets[BUDGET_peak].value = peak.bytes;
	torsh_leaks_free(&leaks);
	for (size_t i = 0; i < N_BUDGETS; i++)
		budgets[i].is_known = true;
	for (size_t i = 0; i < reading->n_processes; i++) {
		const struct profile_process *process = reading->processes[i];

		budgets[BUDGET_dropped].value += process->dropped;
		if (process->rss_peak_bytes > budgets[BUDGET_rss].value)
			budgets[BUDGET_rss].value = process->rss_peak_bytes;
		if (!process->heap.is_there)
			budgets[BUDGET_peak].is_known = budgets[BUDGET_leak].is_known = false;
		if (!process->has_rss_peak)
			budgets[BUDGET_rss].is_known = false;
	}
}

static bool is_kept(const struct budget *budget)
{
	return budget->is_known && budget->value <= budget->limit;
}

static void print_text(const struct budget *budget)
{
	char value[SIZE_TEXT_BYTES], limit[SIZE_TEXT_BYTES];

	if (budget->is_count) {
		torsh_size_grouped(budget->value, value);
		torsh_size_grouped(budget->limit, limit);
	} else {
		torsh_size_exact(budget->value, value);
		torsh_size_exact(budget->limit, limit);
	}
	printf("%-6s %-8s %s: %s, budget %s\n", is_kept(budget) ? "ok" : "BROKEN", budget->name, budget->text,
	       budget->is_known ? value : "not known", limit);
}

static cJSON *make_check(const struct budget *budget)
{
	cJSON *object = torsh_json_object();

	torsh_json_set(object, "name", torsh_json_text(budget->name));
	torsh_json_set(object, "limit", torsh_json_u64(budget->limit));
	torsh_json_set(object, "value", budget->is_known ? torsh_json_u64(budget->value) : torsh_json_text(NULL));
	torsh_json_set(object, "passed", torsh_json_bool(is_kept(budget)));
	return object;
}

static bool print_checks(const struct budget *budgets, const struct reading *reading, bool is_json)
{
	cJSON *checks = torsh_json_list();
	bool are_kept = true;
	struct json json;

	for (size_t i = 0; i < N_BUDGETS; i++) {
		if (!budgets[i].is_set)
			continue;
		are_kept = are_kept && is_kept(&budgets[i]);
		torsh_json_add(checks, make_check(&budgets[i]));
		if (!is_json)
			print_text(&budgets[i]);
	}
	if (!is_json) {
		cJSON_Delete(checks);
		return are_kept;
	}
	torsh_json_begin(&json, stdout);
	torsh_json_member(&json, "version", torsh_json_u64(1));
	torsh_json_member(&json, "pid", torsh_json_u64(reading->processes[0]->pid));
	torsh_json_member(&json, "passed", torsh_json_bool(are_kept));
	torsh_json_member(&json, "checks", checks);
	torsh_json_end(&json);
	return are_kept;
}

int torsh_command_check(int argc, char **argv)
{
	struct read_options options = {0};
	struct budget budgets[N_BUDGETS] = {
#define BUDGET(name, option, argument, text) {#name, option, text, .is_count = *argument == 'N'},
		BUDGETS
#undef BUDGET
	};
	struct reading reading;
	bool are_kept;

	torsh_options_parse(argc, argv, doc, own_options, parse_budget, budgets, &options);
	torsh_reading_open(&reading, &options);
	measure(budgets, &reading, &options);
	if (!reading.profile->is_complete)
		torsh_warn("the recording isn't complete: budgets are compared with what is there");
	if (reading.profile->n_pauses)
		torsh_warn("recording was paused: blocks that were allocated meanwhile are not counted");
	if (reading.n_unfollowed)
		torsh_warn("budgets are compared with what was recorded, not of programs that were not followed");
	are_kept = print_checks(budgets, &reading, options.is_json);
	torsh_reading_close(&reading, &options);
	return are_kept ? TORSH_EXIT_DONE : TORSH_EXIT_FAILED;
}
