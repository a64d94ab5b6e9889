/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh steps: how long each step of a training or an inference took, by phase. */
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/command/command.h"
#include "tools/command/steps/steps_view.h"
#include "tools/report/selection.h"
#include "tools/report/text.h"

#define TEXT_LIMIT 10

enum { KEY_ALL = 0x2000 };

static const char doc[] =
	"Show the steps of a training or an inference: how their times are distributed, and the "
	"slowest: in which phase, FLOPs and the peak of its tensors.\v"
	"Where steps begin is taken from the program's own marks, else from its requests, "
	"ProfilerStep# of torch.profiler, the optimizer's steps, the DataLoader, backward passes, or operators that "
	"repeat themselves; the report has the source, and how sure it is. Of several processes "
	"those are shown for which the best of these rules holds. Phases are times in operators and "
	"modules, and other is what Python does between them: together they are the step. Where "
	"threads are in several, that counts which began last. A loss is recognised by the name of "
	"its module or operator. Device is the time of kernels, copies and memsets that the step "
	"launched, whenever they ran; busy is the share of the step's time in which a device did "
	"anything, of several devices the busiest. Where the recording has a schedule, or --steps or "
	"--skip-warmup choose, the other steps are left out, with a note in the report.";

static void collect(struct steps_view *view)
{
	const struct reading *reading = view->reading;

	view->rule = torsh_prepass_step_rule(&view->prepass);
	view->totals = torsh_need_items(NULL, 0, reading->n_processes, sizeof(*view->totals));
	for (size_t i = 0; i < reading->n_processes; i++) {
		const struct steps *steps = &view->prepass.items[i].steps;

		if (!steps->n || steps->rule != view->rule)
			continue;
		torsh_step_totals_collect(&view->totals[i], reading->recording,
					  reading->processes[i], &view->prepass);
		if (!view->n_steps || steps->certainty < view->certainty)
			view->certainty = steps->certainty;
		view->has_devices = view->has_devices || view->totals[i].has_devices;
		view->n_steps += steps->n;
	}
}

size_t torsh_steps_each(const struct steps_view *view, size_t n_limit, void *context,
			void (*print)(void *context, const struct steps_view *view,
				      const struct shown_step *shown))
{
	size_t n = 0;

	for (size_t i = 0; i < view->prepass.n; i++) {
		const struct prepass_process *of = &view->prepass.items[i];

		const struct step_totals *totals = &view->totals[i];

		for (size_t k = 0; totals->items && k < of->steps.n && n < n_limit; k++, n++) {
			const struct shown_step shown = {.of = of,
							 .step = &of->steps.items[k],
							 .total = &totals->items[k],
							 .totals = totals,
							 .devices = torsh_step_devices(totals, k)};

			print(context, view, &shown);
		}
	}
	return view->n_steps - n;
}

void torsh_steps_phase_traffic(const struct steps_view *view,
			       struct memory_traffic sums[N_PHASES + 1])
{
	memset(sums, 0, (N_PHASES + 1) * sizeof(*sums));
	for (size_t i = 0; i < view->prepass.n; i++) {
		for (size_t k = 0; k <= N_PHASES; k++)
			torsh_memory_traffic_add(&sums[k], &view->totals[i].phase_traffic[k]);
	}
}

uint64_t torsh_shown_step_duration(const struct shown_step *shown)
{
	return shown->step->end_ns - shown->step->start_ns;
}

double torsh_shown_step_busy(const struct shown_step *shown, size_t device)
{
	uint64_t duration_ns = shown->step->end_ns - shown->step->start_ns;

	return duration_ns ? (double)shown->devices[device].busy_ns / (double)duration_ns : 0;
}

static void add_shown(void *context, const struct steps_view *view, const struct shown_step *shown)
{
	struct shown_step **next = context;

	(void)view;
	*(*next)++ = *shown;
}

void torsh_steps_text(const struct steps_view *view, size_t n_limit)
{
	const struct reading *reading = view->reading;
	struct shown_step *steps, *next;

	torsh_text_caveats(stdout, reading->recording, reading->processes, reading->n_processes);
	torsh_selection_text(stdout, &view->prepass);
	if (!view->n_steps) {
		printf("No steps: %s.\n", torsh_step_rule_texts[STEPS_BY_NONE]);
		return;
	}
	next = steps = torsh_need_items(NULL, 0, view->n_steps, sizeof(*steps));
	torsh_steps_each(view, view->n_steps, &next, add_shown);
	torsh_steps_distribution(view, steps);
	torsh_steps_table(view, steps, n_limit);
	free(steps);
}

static const struct argp_option own_options[] = {
	{"all", KEY_ALL, NULL, 0, "list all steps in their order, not the slowest: --limit 0", 0},
	{0},
};

static error_t parse_own(int key, char *argument, struct argp_state *state)
{
	struct read_options *options = state->input;

	(void)argument;
	if (key != KEY_ALL)
		return ARGP_ERR_UNKNOWN;
	options->has_limit = true;
	options->limit = 0;
	return 0;
}

int torsh_command_steps(int argc, char **argv)
{
	struct read_options options = {.without = READING_WITHOUT_HEAP | RECORDING_STACKS};
	struct reading reading;
	struct steps_view view = {.reading = &reading};
	size_t n_limit;

	torsh_options_parse_steps(argc, argv, doc, own_options, parse_own, &options, &options);
	torsh_reading_open(&reading, &options);
	torsh_reading_prepass(&view.prepass, &reading, &options);
	collect(&view);
	n_limit = torsh_options_limit(&options, view.n_steps, TEXT_LIMIT);
	if (options.is_json)
		torsh_steps_json(&view, n_limit);
	else
		torsh_steps_text(&view, n_limit);
	for (size_t i = 0; i < reading.n_processes; i++)
		torsh_step_totals_free(&view.totals[i]);
	free(view.totals);
	torsh_prepass_free(&view.prepass);
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
