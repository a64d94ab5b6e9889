/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh export: a recording's stacks, or its timeline, for other programs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/command/command.h"
#include "tools/command/export/export_stacks.h"
#include "tools/command/export/export_timeline.h"
#include "tools/command/arguments.h"
#include "tools/command/reading.h"
#include "tools/export/exporter.h"
#include "tools/recording/losses.h"
#include "tools/terminal/page.h"

static const char doc[] =
	"Write a recording's stacks or its timeline for other programs:\n"
#define FORMAT(name, holds, ending, when, ranks, text) "  " #name ": for " text "\n"
#include "agent/wire/formats.def"
#undef FORMAT
	"\v"
	"Weights are requested bytes; with --what cpu nanoseconds of processor time, where samples were recorded: torsh-cpu(1). speedscope and pprof files hold all weights of memory "
	"unless --what names one; folded has the leaked bytes by default. The peak is that of all processes "
	"together, unless --pid or --rank choose some: then each one's own. Stacks are merged, unless --all is given: "
	"what the import of an installed package allocated is one entry, \"(import of torch)\", and what is below "
	"0.1 % of the whole, \"(below 0.1 %)\", below the innermost frame that has more; frames of the interpreter "
	"and of the import system are left out. Sums stay the same. This holds of speedscope, pprof, folded and the "
	"table peak_allocations of sqlite.\n\n"
	"--from, --to and --steps restrict a timeline to what begins in a window of time; that is included as a whole, and "
	"nothing that began before. With --steps the device activities are those that the steps launched, whenever they ran. A file whose name ends in .gz is compressed. Stacks of operators are included if they were "
	"recorded (TORSH_PROFILER_OPERATOR_STACKS=1). Readers of chrome take a file for one rank's: see -o and --by-rank.";

enum {
	KEY_FORMAT = 0x2000,
	KEY_WHAT,
	KEY_FROM,
	KEY_TO,
	KEY_STEPS,
	KEY_BY_RANK,
	KEY_ALL,
	KEY_MODEL,
	KEY_DEVICE
};

static const struct argp_option own_options[] = {
	{"format", KEY_FORMAT, "FORMAT", 0, "one of those above", 0},
	{"what", KEY_WHAT, "WHAT", 0, "leaked, peak, allocated, temporary or cpu", 0},
	{"output", 'o', "FILE", 0,
	 "write there instead of to standard output; a directory, or a name with %r, gets the timeline of each rank",
	 0},
	{"from", KEY_FROM, "TIME", 0,
	 "the timeline from here on: 1.5s, 200ms, 30us since the recording began", 0},
	{"to", KEY_TO, "TIME", 0, "the timeline up to here", 0},
	{"steps", KEY_STEPS, "A[-B]", 0, "the timeline of these steps", 0},
	{"all", KEY_ALL, NULL, 0,
	 "every stack with all frames, also what imports allocated and what is below 0.1 %", 0},
	{"by-rank", KEY_BY_RANK, NULL, 0,
	 "of several ranks, a file for each: FILE's name with .rank-N before its ending", 0},
	{"model-name", KEY_MODEL, "NAME", 0,
	 "of profile and manifest: the model's (the class of the outermost module)", 0},
	{"device-name", KEY_DEVICE, "NAME", 0,
	 "of profile and manifest: the device's (as its driver has it)", 0},
	{0},
};

static const struct exporter *const exporters[] = {
#define STACKS(name) &torsh_export_##name,
#define TIMELINE(name)
#define FORMAT(name, holds, ...) holds(name)
#include "agent/wire/formats.def"
#undef FORMAT
#undef TIMELINE
#undef STACKS
};

struct export_options {
	struct stacks_export stacks;
	const struct trace_format *trace; /* of the timeline */
	const char *output; /* NULL: standard output */
	bool has_window;
	struct trace_window window;
};

static const char formats[] = "one of"
#define FORMAT(name, ...) " " #name
#include "agent/wire/formats.def"
#undef FORMAT
	;

static void parse_format(struct export_options *options, const char *argument,
			 struct argp_state *state)
{
	for (size_t i = 0; i < sizeof(exporters) / sizeof(*exporters); i++) {
		if (strcmp(exporters[i]->name, argument) == 0)
			options->stacks.exporter = exporters[i];
	}
	options->trace = torsh_trace_format(argument);
	if (!options->stacks.exporter && !options->trace)
		argp_error(state, "--format takes %s, not \"%s\"", formats, argument);
}

/* End the program if options are missing, or contradict each other. */
static void check_options(const struct export_options *options, struct argp_state *state)
{
	if (!options->stacks.exporter && !options->trace)
		argp_error(state, "--format is missing: %s", formats);
	if (options->stacks.exporter && (options->has_window || options->window.has_steps))
		argp_error(state,
			   "--from, --to and --steps choose of the timeline, which %s doesn't hold",
			   options->stacks.exporter->name);
	if ((options->window.model_name || options->window.device_name) &&
	    !(options->trace && options->trace->takes_names))
		argp_error(state, "--model-name and --device-name are of profile and manifest");
	if (options->window.from_ns >= options->window.to_ns)
		argp_error(state, "--from has to be before --to");
}

static error_t parse_export(int key, char *argument, struct argp_state *state)
{
	struct export_options *options = state->input;

	switch (key) {
	case KEY_FORMAT:
		parse_format(options, argument, state);
		return 0;
	case KEY_WHAT:
		options->stacks.what = (unsigned)torsh_argument_choice(
			state, "what", torsh_export_weight_names, N_EXPORT_WEIGHTS, argument);
		options->stacks.has_what = true;
		return 0;
	case 'o':
		options->output = strcmp(argument, "-") == 0 ? NULL : argument;
		options->stacks.output = options->output;
		return 0;
	case KEY_FROM:
		options->window.from_ns = torsh_argument_moment(state, "from", argument);
		options->has_window = true;
		return 0;
	case KEY_TO:
		options->window.to_ns = torsh_argument_moment(state, "to", argument);
		options->has_window = true;
		return 0;
	case KEY_ALL:
		options->stacks.is_all = options->window.is_all = true;
		return 0;
	case KEY_BY_RANK:
		options->window.is_by_rank = true;
		return 0;
	case KEY_MODEL:
		options->window.model_name = argument;
		return 0;
	case KEY_DEVICE:
		options->window.device_name = argument;
		return 0;
	case KEY_STEPS:
		torsh_argument_steps(state, argument, &options->window.first_step,
				     &options->window.last_step);
		options->window.has_steps = true;
		return 0;
	case ARGP_KEY_END:
		check_options(options, state);
		return ARGP_ERR_UNKNOWN;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Warns, because formats of other programs can't contain losses. */
static void warn_of_losses(const struct reading *reading)
{
	char *sentence =
		torsh_losses_sentence(reading->recording, reading->processes, reading->n_processes);

	if (sentence)
		torsh_warn("%s", sentence);
	free(sentence);
}

int torsh_command_export(int argc, char **argv)
{
	struct read_options options = {0};
	struct export_options own = {.window.to_ns = UINT64_MAX};
	struct reading reading;
	const char *name;
	bool is_binary;

	torsh_options_parse(argc, argv, doc, own_options, parse_export, &own, &options);
	torsh_page_begin(false);
	name = own.trace ? own.trace->name : own.stacks.exporter->name;
	is_binary = own.trace ? own.trace->is_binary : own.stacks.exporter->is_binary;
	if (own.trace && own.trace->needs_path && !own.output)
		torsh_die("%s needs a name for what it writes: -o FILE", name);
	if (is_binary && !own.output && isatty(STDOUT_FILENO))
		torsh_die("%s is no text: give it a file with -o", name);
	options.without = own.trace && own.trace->needs_heap ? 0 : RECORDING_MOMENTS;
	if (own.trace && !own.trace->needs_heap)
		options.without |= RECORDING_USAGE;
	torsh_reading_open(&reading, &options);
	warn_of_losses(&reading);
	if (own.trace)
		torsh_timeline_export(own.trace, &own.window, own.output, &reading);
	else
		torsh_stacks_export(&own.stacks, &reading, &options);
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
