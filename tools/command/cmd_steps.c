/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh steps: how long each step of a training took, and for what. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/command/command.h"
#include "tools/command/options.h"
#include "tools/ops/step_totals.h"
#include "tools/report/parts.h"
#include "tools/report/selection.h"
#include "tools/report/text.h"

#define TEXT_LIMIT 30
#define PROCESSES_SHOWN 12
#define SLOW_MEDIANS 2u /* what of the first steps takes longer is a warm-up */

static const char doc[] =
	"Show the steps of a training: how long each took, in which phase, FLOPs and the peak of its tensors.\v"
	"Where steps begin is taken from the program's own marks, else from ProfilerStep# of torch.profiler, the "
	"optimizer's steps, the DataLoader, backward passes, or operators that repeat themselves; the report has the source. Of "
	"several processes those are shown for which the best of these rules holds. Phases are times in operators and "
	"modules, and other is what Python does between them: together they are the step. Where threads are in several, that "
	"counts which began last. A loss is recognised by the name of its module or operator. Device is the "
	"time of kernels, copies and memsets that the step launched, whenever they ran; busy is the share of the step's time in "
	"which a device did anything, of several devices the busiest. Where the "
	"recording has a schedule, or --steps or --skip-warmup choose, the other steps are left out, with a note in the report.";

struct view {
	const struct reading *reading;
	struct prepass prepass;
	enum step_rule rule;
	struct step_totals *totals; /* by process; without items: it isn't shown */
	bool has_devices; /* of some process that is shown devices were recorded */
	size_t n_steps; /* of all that are shown */
};

static void collect(struct view *view)
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
		view->has_devices = view->has_devices || view->totals[i].has_devices;
		view->n_steps += steps->n;
	}
}

static void emit_phases(struct json_writer *json, const struct step_total *total)
{
	torsh_json_begin_object(json, "phases");
	for (size_t i = 0; i < N_PHASES; i++)
		torsh_json_put_u64(json, torsh_phase_names[i], total->spent.phase_ns[i]);
	torsh_json_put_u64(json, "other", total->spent.other_ns);
	torsh_json_end_object(json);
}

/* A step that is shown. */
struct shown {
	const struct prepass_process *of;
	const struct step *step;
	const struct step_total *total;
	const struct step_totals *totals; /* of the process */
	const struct step_device *devices; /* totals->n_devices of them */
};

static double busy_share(const struct shown *shown, size_t device)
{
	uint64_t duration_ns = shown->step->end_ns - shown->step->start_ns;

	return duration_ns ? (double)shown->devices[device].busy_ns / (double)duration_ns : 0;
}

static void emit_device_phases(struct json_writer *json, const struct shown *shown)
{
	if (!shown->totals->has_devices) {
		torsh_json_put_null(json, "device_phases");
		return;
	}
	torsh_json_begin_object(json, "device_phases");
	for (size_t i = 0; i < N_PHASES; i++)
		torsh_json_put_u64(json, torsh_phase_names[i], shown->total->phase_device_ns[i]);
	torsh_json_end_object(json);
}

static void emit_devices(struct json_writer *json, const struct shown *shown)
{
	torsh_json_begin_array(json, "devices");
	for (size_t i = 0; i < shown->totals->n_devices; i++) {
		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "device", shown->totals->devices[i]);
		torsh_json_put_u64(json, "device_ns", shown->devices[i].device_ns);
		torsh_json_put_u64(json, "busy_ns", shown->devices[i].busy_ns);
		torsh_json_put_double(json, "busy_share", busy_share(shown, i));
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void emit_step(struct json_writer *json, const struct shown *shown, bool has_flops)
{
	const struct prepass_process *of = shown->of;
	const struct step *step = shown->step;
	const struct step_total *total = shown->total;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "index", step->number);
	torsh_json_put_u64(json, "pid", of->process->pid);
	torsh_json_put_u64(json, "start_ns", step->start_ns);
	torsh_json_put_u64(json, "duration_ns", step->end_ns - step->start_ns);
	torsh_json_put_text(json, "rule", torsh_step_rule_names[of->steps.rule]);
	torsh_json_put_u64(json, "calls", total->calls);
	torsh_json_put_known(json, "flops", has_flops, total->flops);
	torsh_json_put_known(json, "flops_all", has_flops, total->flops_all);
	torsh_json_put_known(json, "peak_bytes", of->n_tensors, total->peak_bytes);
	emit_phases(json, total);
	torsh_json_put_known(json, "device_ns", shown->totals->has_devices, total->device_ns);
	emit_device_phases(json, shown);
	emit_devices(json, shown);
	torsh_json_end_object(json);
}

/* Calls print for the first n_limit steps. Returns how many there were beside them. */
static size_t for_each_step(const struct view *view, size_t n_limit, void *context,
			    void (*print)(void *context, const struct view *view,
					  const struct shown *shown))
{
	size_t n = 0;

	for (size_t i = 0; i < view->prepass.n; i++) {
		const struct prepass_process *of = &view->prepass.items[i];

		const struct step_totals *totals = &view->totals[i];

		for (size_t k = 0; totals->items && k < of->steps.n && n < n_limit; k++, n++) {
			const struct shown shown = {.of = of,
						    .step = &of->steps.items[k],
						    .total = &totals->items[k],
						    .totals = totals,
						    .devices = torsh_step_devices(totals, k)};

			print(context, view, &shown);
		}
	}
	return view->n_steps - n;
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void add_duration(void *context, const struct view *view, const struct shown *shown)
{
	uint64_t **next = context;

	(void)view;
	*(*next)++ = shown->step->end_ns - shown->step->start_ns;
}

/* The totals over all steps. */
struct durations {
	uint64_t median_ns, longest_ns;
	/* of some process: the steps at its beginning that took SLOW_MEDIANS medians or more */
	size_t n_slow_first;
};

static size_t count_slow_first(const struct steps *steps, uint64_t median_ns)
{
	size_t n = 0;

	while (n < steps->n &&
	       steps->items[n].end_ns - steps->items[n].start_ns > SLOW_MEDIANS * median_ns)
		n++;
	return n;
}

static struct durations find_durations(const struct view *view)
{
	uint64_t *all = torsh_need_items(NULL, 0, view->n_steps, sizeof(*all)), *next = all;
	struct durations durations = {0};

	for_each_step(view, view->n_steps, &next, add_duration);
	if (view->n_steps) {
		qsort(all, view->n_steps, sizeof(*all), compare_numbers);
		durations.median_ns = all[view->n_steps / 2];
		durations.longest_ns = all[view->n_steps - 1];
	}
	free(all);
	for (size_t i = 0; i < view->prepass.n; i++) {
		size_t n = view->totals[i].items ? count_slow_first(&view->prepass.items[i].steps,
								    durations.median_ns)
						 : 0;

		durations.n_slow_first = n > durations.n_slow_first ? n : durations.n_slow_first;
	}
	return durations;
}

static void print_item(void *context, const struct view *view, const struct shown *shown)
{
	emit_step(context, shown, !view->reading->recording->without_flops);
}

static void print_json(const struct view *view, size_t n_limit)
{
	const struct reading *reading = view->reading;
	struct durations durations = find_durations(view);
	struct json_writer json;
	size_t n_left;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_put_text(&json, "rule", torsh_step_rule_names[view->rule]);
	torsh_json_put_text(&json, "rule_text", torsh_step_rule_texts[view->rule]);
	torsh_json_put_known(&json, "median_ns", view->n_steps, durations.median_ns);
	torsh_json_put_u64(&json, "slow_first_steps", durations.n_slow_first);
	torsh_json_begin_lines(&json, "steps");
	n_left = for_each_step(view, n_limit, &json, print_item);
	torsh_json_end_array(&json);
	torsh_json_put_u64(&json, "omitted", n_left);
	torsh_parts_emit_events(&json, reading->processes, reading->n_processes);
	torsh_parts_emit_recording(&json, reading->recording);
	torsh_selection_members(&json, reading->processes, reading->n_processes, &view->prepass);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
}

static void print_flops(const struct view *view, const struct step_total *total,
			uint64_t duration_ns)
{
	char text[SIZE_TEXT_BYTES];

	if (view->reading->recording->without_flops) {
		torsh_text_cell(stdout, "-");
		torsh_text_cell(stdout, "-");
		return;
	}
	torsh_text_cell(stdout, torsh_size_si(total->flops_all, text));
	snprintf(text, sizeof(text), "%.3g",
		 duration_ns ? (double)total->flops_all / (double)duration_ns : 0);
	torsh_text_cell(stdout, text);
}

static void print_phase(uint64_t ns)
{
	char text[SIZE_TEXT_BYTES];

	torsh_text_cell(stdout, ns ? torsh_size_duration(ns, text) : "-");
}

/* Of several devices the busiest. */
static void print_devices(const struct view *view, const struct shown *shown)
{
	char text[SIZE_TEXT_BYTES];
	double most = 0;

	if (!view->has_devices)
		return;
	for (size_t i = 0; i < shown->totals->n_devices; i++)
		most = busy_share(shown, i) > most ? busy_share(shown, i) : most;
	torsh_text_cell(stdout, shown->totals->has_devices
					? torsh_size_duration(shown->total->device_ns, text)
					: "-");
	snprintf(text, sizeof(text), "%.1f %%", 100 * most);
	torsh_text_cell(stdout, shown->totals->n_devices ? text : "-");
}

static void print_line(void *context, const struct view *view, const struct shown *shown)
{
	const struct step *step = shown->step;
	const struct step_total *total = shown->total;
	static const enum span_phase order[] = {PHASE_SETUP, PHASE_DATA,     PHASE_FORWARD,
						PHASE_LOSS,  PHASE_BACKWARD, PHASE_OPTIMIZER};
	uint64_t duration_ns = step->end_ns - step->start_ns;
	char text[SIZE_TEXT_BYTES];

	(void)context;
	printf("%8" PRIu64, step->number);
	torsh_text_cell(stdout, torsh_size_duration(duration_ns, text));
	for (size_t i = 0; i < N_PHASES; i++)
		print_phase(total->spent.phase_ns[order[i]]);
	print_phase(total->spent.other_ns);
	print_flops(view, total, duration_ns);
	print_devices(view, shown);
	torsh_text_cell(stdout,
			shown->of->n_tensors ? torsh_size_human(total->peak_bytes, text) : "-");
	printf(" %8" PRIu32 "\n", shown->of->process->pid);
}

static void print_durations(const struct view *view)
{
	struct durations durations = find_durations(view);
	char median[SIZE_TEXT_BYTES], longest[SIZE_TEXT_BYTES];

	torsh_text_heading(stdout, "%zu steps, median %s, longest %s: %s", view->n_steps,
			   torsh_size_duration(durations.median_ns, median),
			   torsh_size_duration(durations.longest_ns, longest),
			   torsh_step_rule_texts[view->rule]);
	if (durations.n_slow_first)
		printf("the first %zu took more than %u times the median: --skip-warmup %zu leaves them out\n",
		       durations.n_slow_first, SLOW_MEDIANS, durations.n_slow_first);
}

static void print_text(const struct view *view, size_t n_limit)
{
	const struct reading *reading = view->reading;
	size_t n_left;

	torsh_text_begin(stdout, reading->recording, reading->processes, reading->n_processes,
			 PROCESSES_SHOWN);
	torsh_text_events(stdout, reading->processes, reading->n_processes);
	torsh_text_notes(stdout, reading->recording, reading->processes, reading->n_processes);
	torsh_selection_text(stdout, &view->prepass);
	if (!view->n_steps) {
		printf("No steps: %s.\n", torsh_step_rule_texts[STEPS_BY_NONE]);
		return;
	}
	print_durations(view);
	printf("\n%8s %10s %10s %10s %10s %10s %10s %10s %10s %10s %10s", "step", "time", "setup",
	       "data", "forward", "loss", "backward", "optimizer", "other", "FLOPs", "GFLOP/s");
	if (view->has_devices)
		printf(" %10s %10s", "device", "busy");
	printf(" %10s %8s\n", "peak", "pid");
	n_left = for_each_step(view, n_limit, NULL, print_line);
	if (n_left)
		printf("... and %zu more; --limit 0 shows all\n", n_left);
}

int torsh_command_steps(int argc, char **argv)
{
	struct read_options options = {0};
	struct reading reading;
	struct view view = {.reading = &reading};
	size_t n_limit;

	torsh_options_parse_steps(argc, argv, doc, NULL, NULL, NULL, &options);
	torsh_reading_open(&reading, &options);
	torsh_reading_prepass(&view.prepass, &reading, &options);
	collect(&view);
	n_limit = torsh_options_limit(&options, view.n_steps, TEXT_LIMIT);
	if (options.is_json)
		print_json(&view, n_limit);
	else
		print_text(&view, n_limit);
	for (size_t i = 0; i < reading.n_processes; i++)
		torsh_step_totals_free(&view.totals[i]);
	free(view.totals);
	torsh_prepass_free(&view.prepass);
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
