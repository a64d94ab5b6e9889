/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/screen/screen_time.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/host/gc_figures.h"
#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/ops/step_totals.h"
#include "tools/report/counters/traffic_report.h"
#include "tools/report/screen/screen_line.h"

#define OPERATORS_SHOWN 3u
#define COLLECTOR_PCT_MIN 1.0 /* a smaller share of the time is not worth a line */
#define CURVE_LEAST 20u /* fewer steps have no curve */

static int compare_operators(const void *a, const void *b)
{
	const struct operator_total *x = a, *y = b;

	if (x->self_cpu_ns != y->self_cpu_ns)
		return x->self_cpu_ns < y->self_cpu_ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

static void add_phases(struct screen_time *time, const struct overview *overview,
		       const struct prepass *prepass, size_t i)
{
	const struct steps *steps = &prepass->items[i].steps;
	struct step_totals totals = {0};

	if (!steps->n || steps->rule != time->steps.rule)
		return;
	torsh_step_totals_collect(&totals, overview->recording, overview->processes[i], prepass);
	for (size_t k = 0; k < steps->n; k++) {
		for (size_t phase = 0; phase < N_PHASES; phase++)
			time->phase_ns[phase] += totals.items[k].spent.phase_ns[phase];
		time->other_ns += totals.items[k].spent.other_ns;
		time->step_ns += steps->items[k].end_ns - steps->items[k].start_ns;
	}
	torsh_step_totals_free(&totals);
}

void torsh_screen_time_collect(struct screen_time *time, const struct overview *overview,
			       const struct prepass *prepass)
{
	const struct operators_request request = {.merge_nested = true};

	*time = (struct screen_time){.steps = torsh_step_durations_find(prepass)};
	for (size_t i = 0; i < prepass->n; i++)
		add_phases(time, overview, prepass, i);
	if (!torsh_prepass_has_operators(prepass))
		return;
	torsh_operators_collect(&time->operators, &request, overview->recording,
				overview->processes, overview->n_processes, prepass);
	if (time->operators.n)
		qsort(time->operators.items, time->operators.n, sizeof(*time->operators.items),
		      compare_operators);
}

void torsh_screen_time_free(struct screen_time *time)
{
	if (time->operators.items)
		torsh_operators_free(&time->operators);
}

static void print_heading(const struct screen_time *time)
{
	const struct step_durations *steps = &time->steps;
	char n[SIZE_TEXT_BYTES], median[SIZE_TEXT_BYTES], p99[SIZE_TEXT_BYTES],
		longest[SIZE_TEXT_BYTES];

	if (!steps->n)
		torsh_screen_section("TIME", "%s of CPU time in %s of operators, no steps",
				     torsh_size_duration(time->operators.self_cpu_ns, median),
				     torsh_size_counted(time->operators.calls, "call", n));
	else if (steps->n == 1)
		torsh_screen_section("TIME", "1 step of %s",
				     torsh_size_duration(steps->longest_ns, longest));
	else
		torsh_screen_section("TIME", "%s, median %s, p99 %s, longest %s (step %" PRIu64 ")",
				     torsh_size_counted(steps->n, "step", n),
				     torsh_size_duration(steps->median_ns, median),
				     torsh_size_duration(steps->p99_ns, p99),
				     torsh_size_duration(steps->longest_ns, longest),
				     steps->longest_number);
}

/* Print the durations of the first process that has steps, in order and cut at p99. */
static void print_curve(const struct screen_time *time, const struct prepass *prepass)
{
	size_t columns = torsh_screen_curve_columns(), i = 0;
	const struct steps *steps;
	double *values;

	while (i < prepass->n &&
	       (!prepass->items[i].steps.n || prepass->items[i].steps.rule != time->steps.rule))
		i++;
	if (i == prepass->n || prepass->items[i].steps.n < CURVE_LEAST)
		return;
	steps = &prepass->items[i].steps;
	columns = steps->n < columns ? steps->n : columns;
	values = torsh_need_items(NULL, 0, columns, sizeof(*values));
	for (size_t k = 0; k < steps->n; k++) {
		uint64_t ns = steps->items[k].end_ns - steps->items[k].start_ns;
		double *value = &values[k * columns / steps->n];

		ns = ns < time->steps.p99_ns ? ns : time->steps.p99_ns;
		*value = (double)ns > *value ? (double)ns : *value;
	}
	torsh_screen_curve("in order", values, columns, "up to p99");
	free(values);
}

/* A phase's share of the steps' time. */
struct part {
	const char *name;
	uint64_t ns;
};

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->ns == y->ns ? strcmp(x->name, y->name) : x->ns < y->ns ? 1 : -1;
}

/* Print "backward 41.0%, forward 32.2%, ...", largest first. */
static void print_phases(const struct screen_time *time)
{
	struct part parts[N_PHASES + 1];
	char *text = NULL, share[SIZE_TEXT_BYTES];

	if (!time->step_ns || time->other_ns == time->step_ns)
		return;
	for (size_t i = 0; i < N_PHASES; i++)
		parts[i] = (struct part){torsh_phase_names[i], time->phase_ns[i]};
	parts[N_PHASES] = (struct part){"other", time->other_ns};
	qsort(parts, N_PHASES + 1, sizeof(*parts), compare_parts);
	for (size_t i = 0; i <= N_PHASES && parts[i].ns; i++)
		text = torsh_screen_append(
			text, "%s %s", parts[i].name,
			torsh_size_percent((double)parts[i].ns, (double)time->step_ns, share));
	torsh_screen_line(STYLE_PLAIN, 1, "%*s%-*s%s", SCREEN_INDENT, "", SCREEN_LABEL, "phases",
			  text ? text : "");
	free(text);
}

static void print_operators(const struct operators *operators)
{
	char *text = NULL, share[SIZE_TEXT_BYTES];

	for (size_t i = 0; i < operators->n && i < OPERATORS_SHOWN; i++) {
		const struct operator_total *item = &operators->items[i];

		if (operators->self_cpu_ns && item->self_cpu_ns)
			text = torsh_screen_append(
				text, "%s %s", item->name,
				torsh_size_percent((double)item->self_cpu_ns,
						   (double)operators->self_cpu_ns, share));
	}
	if (text)
		torsh_screen_line(STYLE_PLAIN, 1, "%*s%-*s%s", SCREEN_INDENT, "", SCREEN_LABEL,
				  "operators", text);
	free(text);
}

/* Of the process where it took most, if that matters. */
static void print_collector(const struct overview *overview)
{
	const struct metrics *metrics = overview->analysis.metrics;
	const struct metrics_process *worst = NULL;
	char runs[SIZE_TEXT_BYTES], all[SIZE_TEXT_BYTES], longest[SIZE_TEXT_BYTES];

	for (size_t i = 0; metrics && i < metrics->n; i++) {
		if (!worst || torsh_gc_share(&metrics->processes[i]) > torsh_gc_share(worst))
			worst = &metrics->processes[i];
	}
	if (!worst || torsh_gc_share(worst) < COLLECTOR_PCT_MIN)
		return;
	torsh_screen_line(STYLE_PLAIN, 1, "%*s%-*s%.1f%% in %s, %s in all, the longest %s",
			  SCREEN_INDENT, "", SCREEN_LABEL, "Python GC", torsh_gc_share(worst),
			  torsh_size_counted(torsh_gc_runs(&worst->gc.steady), "run", runs),
			  torsh_size_duration(torsh_gc_ns(&worst->gc.steady), all),
			  torsh_size_duration(worst->gc.steady.longest_ns, longest));
}

/* What memory controllers moved, if they were counted. */
static void print_traffic(const struct overview *overview)
{
	struct traffic_report report;
	char text[TRAFFIC_TEXT_BYTES];

	torsh_traffic_report_make(&report, overview->recording, overview->processes,
				  overview->n_processes);
	if (torsh_traffic_report_text(&report, text))
		torsh_screen_line(STYLE_PLAIN, 1, "%*s%-*s%s", SCREEN_INDENT, "", SCREEN_LABEL,
				  "memory", text);
}

void torsh_screen_time(const struct screen_time *time, const struct overview *overview,
		       const struct prepass *prepass)
{
	if (!time->steps.n && !time->operators.n)
		return;
	print_heading(time);
	print_curve(time, prepass);
	print_phases(time);
	print_operators(&time->operators);
	print_traffic(overview);
	print_collector(overview);
}
