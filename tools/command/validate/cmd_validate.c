/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh validate: which claims of a brief held, by recordings from before and after a change. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/command/report/overview_reading.h"
#include "tools/command/run_sets.h"
#include "tools/report/validate/validation.h"

#define SITES_NAMED 1

static const char doc[] =
	"Judge which claims of a brief held after a change, and whether the program still computes the same.\v"
	"A claim is that a figure becomes less if its cause goes away, by so much at most. It held if the cause is gone, or half of "
	"it, and the figure became less, beyond the spread, by at least half of what was predicted; held in part if it became less by "
	"less. It failed if the cause is less and the figure is not. A cause that is still there was not tried. Several runs of each "
	"side are given with -- between them, options before it, or as directories that hold recordings: a figure is then the median of its "
	"runs, and the spread is that of torsh-diff(1). Results are equal if the values that the program recorded (torsh.scalar, "
	"torsh.h, NVTX, ITT), and the numbers in files of what it printed, lie within the tolerance of those before. Without either "
	"they are not known. Exit status 1 when no claim held, one failed or results differ.";

enum {
	KEY_BRIEF = 0x2000,
	KEY_PER,
	KEY_TOLERANCE,
	KEY_VALUE,
	KEY_PRINTED_BEFORE,
	KEY_PRINTED_AFTER
};

static const struct argp_option own_options[] = {
	{"brief", KEY_BRIEF, "FILE", 0,
	 "what torsh brief wrote, Markdown or JSON; without it the brief of the first run before",
	 0},
	{"per", KEY_PER, "WHAT", 0,
	 "step or run: what is compared where the runs have different numbers of steps", 0},
	{"tolerance", KEY_TOLERANCE, "X", 0,
	 "values are equal to a relative difference of X (0.001)", 0},
	{"value", KEY_VALUE, "NAME", 0,
	 "compare this recorded value, and no others but such; may be repeated", 0},
	{"printed-before", KEY_PRINTED_BEFORE, "FILE", 0,
	 "what the program printed before, to be compared number by number", 0},
	{"printed-after", KEY_PRINTED_AFTER, "FILE", 0, "what it printed after", 0},
	{0},
};

static const char *const per_names[] = {[PER_STEP] = "step", [PER_RUN] = "run"};

struct validate_options {
	struct run_sets sets;
	const char *brief; /* NULL: of the first run */
	struct validation validation;
	struct read_options common;
};

static double parse_tolerance(struct argp_state *state, const char *text)
{
	char *end;
	double tolerance = strtod(text, &end);

	if (end == text || *end || !(tolerance >= 0) || isinf(tolerance))
		argp_error(state, "--tolerance=%s is no relative difference, such as 0.001", text);
	return tolerance;
}

static void add_value(struct results *results, const char *name)
{
	results->names = torsh_array_reserve(results->names, results->n_names, &results->names_room,
					     sizeof(*results->names));
	results->names[results->n_names++] = name;
}

static error_t parse_own(int key, char *argument, struct argp_state *state)
{
	struct validate_options *options = state->input;
	struct results *results = &options->validation.results;

	switch (key) {
	case ARGP_KEY_ARG:
		torsh_run_sets_add(&options->sets, argument, state);
		options->common.path = argument;
		return 0;
	case ARGP_KEY_END:
		torsh_run_sets_check(&options->sets, state);
		if (!results->text.before != !results->text.after)
			argp_error(state, "--printed-before and --printed-after go together");
		return 0;
	case KEY_BRIEF:
		options->brief = argument;
		return 0;
	case KEY_PER:
		options->validation.per = (enum validate_per)(
			PER_STEP +
			torsh_argument_choice(state, "per", per_names + PER_STEP, 2, argument));
		return 0;
	case KEY_TOLERANCE:
		results->tolerance = parse_tolerance(state, argument);
		return 0;
	case KEY_VALUE:
		add_value(results, argument);
		return 0;
	case KEY_PRINTED_BEFORE:
		results->text.before = argument;
		return 0;
	case KEY_PRINTED_AFTER:
		results->text.after = argument;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Make the brief of a run; measure it, or, before there are claims, take its own. */
static void read_run(struct validate_options *own, size_t run, struct claims *claims)
{
	struct read_options *options = &own->common;
	size_t n_rules = options->suppress.n;
	struct overview_reading of;
	struct suppress rules;
	struct brief brief;

	options->path = own->sets.paths[run];
	options->order = ORDER_LOST;
	torsh_overview_read(&of, options, SITES_NAMED);
	options->order = ORDER_BYTES;
	torsh_overview_read_timeline(&of, options, true);
	torsh_overview_read_lists(&of, options, SITES_NAMED);
	torsh_brief_make(&brief, &of.overview, torsh_overview_prepass(&of));
	if (claims)
		torsh_claims_take(claims, &brief);
	if (!own->validation.claims)
		torsh_validation_begin(&own->validation, claims, own->sets.n_before,
				       own->sets.n - own->sets.n_before);
	torsh_validation_measure(&own->validation, &brief, torsh_overview_prepass(&of));
	torsh_brief_free(&brief);
	/* The next run is read with the same rules. */
	torsh_suppress_restart_with(&options->suppress, n_rules);
	rules = options->suppress;
	options->suppress = (struct suppress){0};
	torsh_overview_close(&of, options);
	options->suppress = rules;
}

int torsh_command_validate(int argc, char **argv)
{
	struct validate_options own = {.validation.results.tolerance = RESULTS_TOLERANCE};
	struct claims claims = {0};
	bool holds;

	torsh_options_parse_several(argc, argv, "BEFORE AFTER\nBEFORE... -- AFTER...", doc,
				    own_options, parse_own, &own, &own.common);
	torsh_run_sets_expand(&own.sets);
	if (own.brief) {
		torsh_claims_read(&claims, own.brief);
		torsh_validation_begin(&own.validation, &claims, own.sets.n_before,
				       own.sets.n - own.sets.n_before);
	}
	for (size_t i = 0; i < own.sets.n; i++)
		read_run(&own, i, own.brief || i ? NULL : &claims);
	torsh_validation_judge(&own.validation);
	if (own.common.is_json)
		torsh_validation_json(&own.validation);
	else
		torsh_validation_text(&own.validation);
	holds = torsh_validation_holds(&own.validation);
	torsh_validation_free(&own.validation);
	torsh_claims_free(&claims);
	torsh_run_sets_free(&own.sets);
	torsh_suppress_free(&own.common.suppress);
	return holds ? TORSH_EXIT_DONE : TORSH_EXIT_FAILED;
}
