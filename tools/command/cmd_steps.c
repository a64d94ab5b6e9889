/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh steps: how long each step of a training took, and for what. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/command/command.h"
#include "tools/command/options.h"
#include "tools/ops/step_durations.h"
#include "tools/ops/step_totals.h"
#include "tools/report/parts.h"
#include "tools/report/selection.h"
#include "tools/report/text.h"
#include "tools/terminal/bar.h"
#include "tools/terminal/table.h"
#include "tools/terminal/width.h"

#define TEXT_LIMIT 10
#define CURVE_LEAST 20 /* fewer steps are no distribution */
#define CURVE_COLUMNS 60
#define CURVE_MARGIN 30 /* of the text beside it */
#define DURATION_ROWS 6
#define DURATION_COLUMNS 24

enum { KEY_ALL = 0x2000 };

static const char doc[] =
	"Show the steps of a training: how their times are distributed, and the slowest: in which phase, FLOPs and the peak of "
	"its tensors.\v"
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

static void print_item(void *context, const struct view *view, const struct shown *shown)
{
	emit_step(context, shown, !view->reading->recording->without_flops);
}

static void print_json(const struct view *view, size_t n_limit)
{
	const struct reading *reading = view->reading;
	struct step_durations durations = torsh_step_durations_find(&view->prepass);
	struct json_writer json;
	size_t n_left;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_put_text(&json, "rule", torsh_step_rule_names[view->rule]);
	torsh_json_put_text(&json, "rule_text", torsh_step_rule_texts[view->rule]);
	torsh_json_put_known(&json, "median_ns", view->n_steps, durations.median_ns);
	torsh_json_put_known(&json, "p90_ns", view->n_steps, durations.p90_ns);
	torsh_json_put_known(&json, "p99_ns", view->n_steps, durations.p99_ns);
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

/* The columns of the table; those without a value in any step are hidden. */
enum {
	COLUMN_STEP,
	COLUMN_TIME,
	COLUMN_BAR,
	COLUMN_PHASES,
	COLUMN_OTHER = COLUMN_PHASES + N_PHASES,
	COLUMN_FLOPS,
	COLUMN_RATE,
	COLUMN_DEVICE,
	COLUMN_BUSY,
	COLUMN_PEAK,
	COLUMN_PID,
	N_COLUMNS
};

static const enum span_phase order[] = {PHASE_SETUP, PHASE_DATA,     PHASE_FORWARD,
					PHASE_LOSS,  PHASE_BACKWARD, PHASE_OPTIMIZER};

static const struct table_column columns[N_COLUMNS] = {
	[COLUMN_STEP] = {"step", TABLE_NUMBER, .drop = 0},
	[COLUMN_TIME] = {"time", TABLE_NUMBER, .drop = 0},
	[COLUMN_BAR] = {"", TABLE_BAR, .drop = 4},
	{"setup", TABLE_NUMBER, .drop = 3},
	{"data", TABLE_NUMBER, .drop = 1},
	{"forward", TABLE_NUMBER, .drop = 1},
	{"loss", TABLE_NUMBER, .drop = 3},
	{"backward", TABLE_NUMBER, .drop = 1},
	{"optimizer", TABLE_NUMBER, .drop = 1},
	[COLUMN_OTHER] = {"other", TABLE_NUMBER, .drop = 1},
	[COLUMN_FLOPS] = {"FLOPs", TABLE_NUMBER, .drop = 6},
	[COLUMN_RATE] = {"GFLOP/s", TABLE_NUMBER, .drop = 5},
	[COLUMN_DEVICE] = {"device", TABLE_NUMBER, .drop = 2},
	[COLUMN_BUSY] = {"busy", TABLE_NUMBER, .drop = 2},
	[COLUMN_PEAK] = {"peak", TABLE_NUMBER, .drop = 4},
	[COLUMN_PID] = {"pid", TABLE_NUMBER, .drop = 1},
};

static uint64_t duration_of(const struct shown *shown)
{
	return shown->step->end_ns - shown->step->start_ns;
}

static void add_shown(void *context, const struct view *view, const struct shown *shown)
{
	struct shown **next = context;

	(void)view;
	*(*next)++ = *shown;
}

/* The slowest first; of equal ones the earlier. */
static int compare_shown(const void *a, const void *b)
{
	const struct shown *x = a, *y = b;
	uint64_t one = duration_of(x), other = duration_of(y);

	if (one != other)
		return one < other ? 1 : -1;
	return (x->step->start_ns > y->step->start_ns) - (x->step->start_ns < y->step->start_ns);
}

static void put_flops(struct table *table, const struct view *view, const struct shown *shown)
{
	uint64_t duration_ns = duration_of(shown);
	double flops = (double)shown->total->flops_all;
	char text[SIZE_TEXT_BYTES];

	if (view->reading->recording->without_flops) {
		torsh_table_unknown(table);
		torsh_table_unknown(table);
		return;
	}
	torsh_table_cell(table, "%s", torsh_size_si(shown->total->flops_all, text));
	torsh_table_cell(table, "%.3g", duration_ns ? flops / (double)duration_ns : 0);
}

/* Of several devices the busiest. */
static void put_devices(struct table *table, const struct shown *shown)
{
	double most = 0;

	for (size_t i = 0; i < shown->totals->n_devices; i++)
		most = busy_share(shown, i) > most ? busy_share(shown, i) : most;
	if (shown->totals->has_devices)
		torsh_table_time(table, shown->total->device_ns);
	else
		torsh_table_unknown(table);
	if (shown->totals->n_devices)
		torsh_table_percent(table, most, 1);
	else
		torsh_table_unknown(table);
}

static void put_phase(struct table *table, uint64_t ns)
{
	if (ns)
		torsh_table_time(table, ns);
	else
		torsh_table_unknown(table);
}

static void put_step(struct table *table, const struct view *view, const struct shown *shown,
		     uint64_t longest_ns)
{
	const struct step_total *total = shown->total;
	uint64_t duration_ns = duration_of(shown);

	torsh_table_cell(table, "%" PRIu64, shown->step->number);
	torsh_table_time(table, duration_ns);
	torsh_table_bar(table, longest_ns ? (double)duration_ns / (double)longest_ns : 0);
	for (size_t i = 0; i < N_PHASES; i++)
		put_phase(table, total->spent.phase_ns[order[i]]);
	put_phase(table, total->spent.other_ns);
	put_flops(table, view, shown);
	put_devices(table, shown);
	if (shown->of->n_tensors)
		torsh_table_bytes(table, total->peak_bytes);
	else
		torsh_table_unknown(table);
	torsh_table_cell(table, "%" PRIu32, shown->of->process->pid);
}

static bool has_phase(const struct shown *steps, size_t n, enum span_phase phase)
{
	for (size_t i = 0; i < n; i++) {
		if (steps[i].total->spent.phase_ns[phase])
			return true;
	}
	return false;
}

static void hide_columns(struct table *table, const struct view *view, const struct shown *steps,
			 size_t n)
{
	bool has_others = false;

	for (size_t i = 0; i < N_PHASES; i++) {
		if (!has_phase(steps, n, order[i]))
			torsh_table_hide(table, COLUMN_PHASES + i);
	}
	for (size_t i = 1; i < n; i++)
		has_others = has_others || steps[i].of != steps[0].of;
	if (!has_others)
		torsh_table_hide(table, COLUMN_PID);
	if (view->has_devices)
		return;
	torsh_table_hide(table, COLUMN_DEVICE);
	torsh_table_hide(table, COLUMN_BUSY);
}

/*
 * A curve of the durations in the order of the steps: where they are more than its columns, of some
 * steps the longest. What takes longer than the 99th percentile has the height of that.
 */
static void print_curve(const struct shown *steps, size_t n, const struct step_durations *durations)
{
	double heights[BAR_COLUMNS_MAX] = {0}, most = (double)durations->p99_ns;
	size_t columns = torsh_width_columns() - CURVE_MARGIN;
	char curve[BAR_TEXT_BYTES], top[SIZE_TEXT_BYTES];

	columns = columns > CURVE_COLUMNS ? CURVE_COLUMNS : columns;
	columns = columns > n ? n : columns;
	for (size_t i = 0; i < n; i++) {
		double duration = (double)duration_of(&steps[i]);
		size_t column = i * columns / n;

		duration = duration > most ? most : duration;
		heights[column] = duration > heights[column] ? duration : heights[column];
	}
	printf("  in order  ");
	torsh_style_print(stdout, STYLE_BAR, "%s", torsh_bar_curve(heights, columns, curve));
	printf("  0 to %s\n", torsh_size_duration(durations->p99_ns, top));
}

/* Print how many of the steps took how long, in ranges of the same length up to p99. */
static void print_histogram(const struct shown *steps, size_t n,
			    const struct step_durations *durations)
{
	uint64_t least = UINT64_MAX, width;
	size_t counts[DURATION_ROWS + 1] = {0}, most = 1;
	char from[SIZE_TEXT_BYTES], to[SIZE_TEXT_BYTES], bar[BAR_TEXT_BYTES];

	for (size_t i = 0; i < n; i++)
		least = duration_of(&steps[i]) < least ? duration_of(&steps[i]) : least;
	width = (durations->p99_ns - least) / DURATION_ROWS + 1;
	for (size_t i = 0; i < n; i++) {
		uint64_t row = (duration_of(&steps[i]) - least) / width;

		counts[row < DURATION_ROWS ? row : DURATION_ROWS]++;
	}
	for (size_t i = 0; i <= DURATION_ROWS; i++)
		most = counts[i] > most ? counts[i] : most;
	for (size_t i = 0; i <= DURATION_ROWS; i++) {
		torsh_size_duration(least + i * width, from);
		torsh_size_duration(
			i < DURATION_ROWS ? least + (i + 1) * width : durations->longest_ns, to);
		if (!counts[i])
			continue;
		printf("%*s to %*s %6zu  ", (int)(12 + strlen(from) - torsh_columns_of(from)), from,
		       (int)(9 + strlen(to) - torsh_columns_of(to)), to, counts[i]);
		torsh_style_print(
			stdout, STYLE_BAR, "%s",
			torsh_bar((double)counts[i] / (double)most, DURATION_COLUMNS, bar));
		putchar('\n');
	}
}

static void print_durations(const struct view *view, const struct shown *steps)
{
	struct step_durations durations = torsh_step_durations_find(&view->prepass);
	char count[SIZE_TEXT_BYTES], median[SIZE_TEXT_BYTES], p90[SIZE_TEXT_BYTES],
		p99[SIZE_TEXT_BYTES], longest[SIZE_TEXT_BYTES];

	torsh_text_heading(stdout, "%s, median %s, p90 %s, p99 %s, longest %s",
			   torsh_size_counted(view->n_steps, "step", count),
			   torsh_size_duration(durations.median_ns, median),
			   torsh_size_duration(durations.p90_ns, p90),
			   torsh_size_duration(durations.p99_ns, p99),
			   torsh_size_duration(durations.longest_ns, longest));
	printf("  a step is %s\n", torsh_step_rule_texts[view->rule]);
	if (durations.n_slow_first)
		printf("  the first %s took more than %u times the median: --skip-warmup %zu %s\n",
		       torsh_size_counted(durations.n_slow_first, "step", count),
		       STEPS_SLOW_MEDIANS, durations.n_slow_first,
		       durations.n_slow_first == 1 ? "leaves it out" : "leaves them out");
	if (view->n_steps < CURVE_LEAST)
		return;
	print_curve(steps, view->n_steps, &durations);
	print_histogram(steps, view->n_steps, &durations);
}

/* All in their order, or the slowest. */
static void print_steps(const struct view *view, struct shown *steps, size_t n)
{
	struct table *table = torsh_table_create(columns, N_COLUMNS);
	uint64_t longest_ns = 0;
	bool is_all = n == view->n_steps;

	hide_columns(table, view, steps, view->n_steps);
	for (size_t i = 0; i < view->n_steps; i++) {
		if (duration_of(&steps[i]) > longest_ns)
			longest_ns = duration_of(&steps[i]);
	}
	if (!is_all)
		qsort(steps, view->n_steps, sizeof(*steps), compare_shown);
	for (size_t i = 0; i < n; i++)
		put_step(table, view, &steps[i], longest_ns);
	putchar('\n');
	if (!is_all)
		printf("the %zu slowest; --all lists all\n", n);
	torsh_table_print(table, stdout);
}

static void print_text(const struct view *view, size_t n_limit)
{
	const struct reading *reading = view->reading;
	struct shown *steps, *next;

	torsh_text_caveats(stdout, reading->recording, reading->processes, reading->n_processes);
	torsh_selection_text(stdout, &view->prepass);
	if (!view->n_steps) {
		printf("No steps: %s.\n", torsh_step_rule_texts[STEPS_BY_NONE]);
		return;
	}
	next = steps = torsh_need_items(NULL, 0, view->n_steps, sizeof(*steps));
	for_each_step(view, view->n_steps, &next, add_shown);
	print_durations(view, steps);
	print_steps(view, steps, n_limit);
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
	struct read_options options = {0};
	struct reading reading;
	struct view view = {.reading = &reading};
	size_t n_limit;

	torsh_options_parse_steps(argc, argv, doc, own_options, parse_own, &options, &options);
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
