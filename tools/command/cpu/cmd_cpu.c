/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh cpu: where threads spent processor time, by samples of their stacks. */
#include "tools/base/die.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/command/cpu/cpu_view.h"

static const char doc[] =
	"Show where the threads of a program spent processor time, by function, line, library, thread, operator, module, "
	"phase or step. It has to be recorded with samples among TORSH_PROFILER_ACTIVITIES: torsh-run(1).\v"
	"A sample counts with what its thread ran since the sample before. Self is what the function did itself, total is with "
	"what it called. A thread that waits has no samples.";

enum { KEY_BY = 0x2000 };

static const struct argp_option own_options[] = {
	{"by", KEY_BY, "WHAT", 0,
	 "function (default), line, library, thread, operator, module, phase or step", 0},
	{0},
};

static error_t parse_cpu(int key, char *argument, struct argp_state *state)
{
	enum cpu_group *group = state->input;

	if (key != KEY_BY)
		return ARGP_ERR_UNKNOWN;
	*group = (enum cpu_group)torsh_argument_choice(state, "by", torsh_cpu_group_names,
						       N_CPU_GROUPS, argument);
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

int torsh_command_cpu(int argc, char **argv)
{
	struct read_options options = {.without = READING_WITHOUT_HEAP};
	struct reading reading;
	struct cpu_view view = {.reading = &reading, .options = &options};

	torsh_options_parse_steps(argc, argv, doc, own_options, parse_cpu, &view.group, &options);
	torsh_reading_open(&reading, &options);
	torsh_reading_prepass(&view.prepass, &reading, &options);
	torsh_cpu_samples_collect(&view.samples, reading.recording, reading.processes,
				  reading.n_processes, &view.prepass);
	if (options.is_json)
		torsh_cpu_print_json(&view);
	else
		torsh_cpu_print_text(&view);
	torsh_cpu_samples_free(&view.samples);
	torsh_prepass_free(&view.prepass);
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
