/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * torsh cpu: where threads spent processor time, by samples of their stacks, and what they waited
 * for.
 */
#include "tools/base/die.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/command/cpu/cpu_off.h"
#include "tools/command/cpu/cpu_view.h"

static const char doc[] =
	"Show where the threads of a program spent processor time, by function, line, library, thread, operator, module, "
	"phase or step. It has to be recorded with samples among TORSH_PROFILER_ACTIVITIES: torsh-run(1).\v"
	"A sample counts with what its thread ran since the sample before. Self is what the function did itself, total is with "
	"what it called. A thread that waits has no samples: --off shows what threads waited for in the C library, where waits "
	"is among TORSH_PROFILER_ACTIVITIES: each wait of 50 us or more with its stack, shorter calls by their number, and which threads ended waits for locks "
	"and conditions. Steps are "
	"shown with what they consist of: operators, what is between them, waits, and Python's garbage collector, moment by "
	"moment on the thread that runs most operators, so that the parts of a step add up to its time. --steps and "
	"--skip-warmup choose steps; the waits are those of the whole run.";

enum { KEY_BY = 0x2000, KEY_OFF, KEY_GIL };

struct cpu_options {
	enum cpu_group group;
	bool is_off, is_gil;
};

static const struct argp_option own_options[] = {
	{"by", KEY_BY, "WHAT", 0,
	 "function (default), line, library, thread, operator, module, phase or step", 0},
	{"off", KEY_OFF, NULL, 0, "what threads waited for", 0},
	{"gil", KEY_GIL, NULL, 0, "only waits for Python's global lock", 0},
	{0},
};

static error_t parse_cpu(int key, char *argument, struct argp_state *state)
{
	struct cpu_options *own = state->input;

	if (key == KEY_BY)
		own->group = (enum cpu_group)torsh_argument_choice(
			state, "by", torsh_cpu_group_names, N_CPU_GROUPS, argument);
	else if (key == KEY_OFF)
		own->is_off = true;
	else if (key == KEY_GIL)
		own->is_gil = true;
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

void torsh_cpu_view_totals(const struct cpu_view *view, enum cpu_group group,
			   struct cpu_totals *totals)
{
	torsh_cpu_totals_make(totals, &view->samples, group, view->reading->symbols,
			      view->options->view);
}

const struct cpu_sampling *torsh_cpu_view_sampling(const struct cpu_view *view)
{
	const struct cpu_sampling *found = NULL;

	for (size_t i = 0; i < view->samples.n_sampling; i++) {
		const struct cpu_sampling *sampling = &view->samples.sampling[i];

		if (sampling->is_known && (!found || !found->source))
			found = sampling;
	}
	return found;
}

bool torsh_cpu_view_has_gc(const struct cpu_view *view)
{
	for (size_t i = 0; i < view->prepass.n; i++) {
		if (torsh_process_attributes_find(&view->prepass.items[i].facts, "python_gc"))
			return true;
	}
	return false;
}

static void print_samples(const struct cpu_options *own, struct reading *reading,
			  const struct read_options *options)
{
	struct cpu_view view = {.reading = reading, .options = options, .group = own->group};

	torsh_reading_prepass(&view.prepass, reading, options);
	torsh_cpu_samples_collect(&view.samples, reading->recording, reading->processes,
				  reading->n_processes, &view.prepass);
	if (options->is_json)
		torsh_cpu_print_json(&view);
	else
		torsh_cpu_print_text(&view);
	torsh_cpu_samples_free(&view.samples);
	torsh_prepass_free(&view.prepass);
}

int torsh_command_cpu(int argc, char **argv)
{
	struct read_options options = {.without = READING_WITHOUT_HEAP};
	struct cpu_options own = {0};
	struct reading reading;

	torsh_options_parse_steps(argc, argv, doc, own_options, parse_cpu, &own, &options);
	torsh_reading_open(&reading, &options);
	if (own.is_off || own.is_gil)
		torsh_cpu_off(&reading, &options, own.is_gil);
	else
		print_samples(&own, &reading, &options);
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
