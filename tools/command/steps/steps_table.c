/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The table of `torsh steps`: a row per step, with its phases. */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/base/size.h"
#include "tools/command/steps/steps_view.h"
#include "tools/terminal/table.h"

/* The columns of the table; those without a value in any step are hidden. */
enum {
	COLUMN_STEP,
	COLUMN_NAME,
	COLUMN_KIND,
	COLUMN_BURST,
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
	[COLUMN_NAME] = {"request", TABLE_TEXT, .drop = 0},
	[COLUMN_KIND] = {"kind", TABLE_TEXT, .drop = 1},
	[COLUMN_BURST] = {"burst", TABLE_NUMBER, .drop = 3},
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

/* The slowest first; equal ones in the order of time. */
static int compare_shown(const void *a, const void *b)
{
	const struct shown_step *x = a, *y = b;
	uint64_t one = torsh_shown_step_duration(x), other = torsh_shown_step_duration(y);

	if (one != other)
		return one < other ? 1 : -1;
	return (x->step->start_ns > y->step->start_ns) - (x->step->start_ns < y->step->start_ns);
}

static void put_flops(struct table *table, const struct steps_view *view,
		      const struct shown_step *shown)
{
	uint64_t duration_ns = torsh_shown_step_duration(shown);
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

/* Put the busiest of several devices. */
static void put_devices(struct table *table, const struct shown_step *shown)
{
	double most = 0;

	for (size_t i = 0; i < shown->totals->n_devices; i++)
		most = torsh_shown_step_busy(shown, i) > most ? torsh_shown_step_busy(shown, i)
							      : most;
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

static void put_word(struct table *table, const char *word)
{
	if (word)
		torsh_table_cell(table, "%s", word);
	else
		torsh_table_unknown(table);
}

static void put_step(struct table *table, const struct steps_view *view,
		     const struct shown_step *shown, uint64_t longest_ns)
{
	const struct step_total *total = shown->total;
	uint64_t duration_ns = torsh_shown_step_duration(shown);

	torsh_table_cell(table, "%" PRIu64, shown->step->number);
	put_word(table, torsh_timeline_label(shown->of->process, shown->step->name));
	put_word(table, torsh_step_kind_names[shown->step->kind]);
	torsh_table_cell(table, "%" PRIu32, shown->step->burst);
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

static bool has_phase(const struct shown_step *steps, size_t n, enum span_phase phase)
{
	for (size_t i = 0; i < n; i++) {
		if (steps[i].total->spent.phase_ns[phase])
			return true;
	}
	return false;
}

static void hide_columns(struct table *table, const struct steps_view *view,
			 const struct shown_step *steps, size_t n)
{
	bool has_others = false, has_names = false, has_kinds = false, has_bursts = false;

	for (size_t i = 0; i < N_PHASES; i++) {
		if (!has_phase(steps, n, order[i]))
			torsh_table_hide(table, COLUMN_PHASES + i);
	}
	for (size_t i = 1; i < n; i++)
		has_others = has_others || steps[i].of != steps[0].of;
	for (size_t i = 0; i < n; i++) {
		has_names = has_names || steps[i].step->name;
		has_kinds = has_kinds || steps[i].step->kind;
		has_bursts = has_bursts || steps[i].of->steps.n_bursts > 1;
	}
	if (!has_others)
		torsh_table_hide(table, COLUMN_PID);
	if (!has_names)
		torsh_table_hide(table, COLUMN_NAME);
	if (!has_kinds)
		torsh_table_hide(table, COLUMN_KIND);
	if (!has_bursts)
		torsh_table_hide(table, COLUMN_BURST);
	if (view->has_devices)
		return;
	torsh_table_hide(table, COLUMN_DEVICE);
	torsh_table_hide(table, COLUMN_BUSY);
}

void torsh_steps_table(const struct steps_view *view, struct shown_step *steps, size_t n)
{
	struct table *table = torsh_table_create(columns, N_COLUMNS);
	uint64_t longest_ns = 0;
	bool is_all = n == view->n_steps;

	hide_columns(table, view, steps, view->n_steps);
	for (size_t i = 0; i < view->n_steps; i++) {
		if (torsh_shown_step_duration(&steps[i]) > longest_ns)
			longest_ns = torsh_shown_step_duration(&steps[i]);
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
