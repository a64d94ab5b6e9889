/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The top of `torsh steps`: a curve of the durations, and their histogram. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/command/steps/steps_view.h"
#include "tools/ops/step_durations.h"
#include "tools/report/counters/traffic_report.h"
#include "tools/report/text.h"
#include "tools/terminal/bar.h"
#include "tools/terminal/columns.h"
#include "tools/terminal/style.h"
#include "tools/terminal/width.h"

#define CURVE_LEAST 20 /* fewer steps are no distribution */
#define CURVE_COLUMNS 60
#define CURVE_MARGIN 30 /* columns of the text next to it */
#define DURATION_ROWS 6
#define DURATION_COLUMNS 24

/*
 * Print a curve of the durations in the order of the steps. A column of several steps shows the
 * longest. The curve is cut at the 99th percentile.
 */
static void print_curve(const struct shown_step *steps, size_t n,
			const struct step_durations *durations)
{
	double heights[BAR_COLUMNS_MAX] = {0}, most = (double)durations->p99_ns;
	size_t columns = torsh_width_columns() - CURVE_MARGIN;
	char curve[BAR_TEXT_BYTES], top[SIZE_TEXT_BYTES];

	columns = columns > CURVE_COLUMNS ? CURVE_COLUMNS : columns;
	columns = columns > n ? n : columns;
	for (size_t i = 0; i < n; i++) {
		double duration = (double)torsh_shown_step_duration(&steps[i]);
		size_t column = i * columns / n;

		duration = duration > most ? most : duration;
		heights[column] = duration > heights[column] ? duration : heights[column];
	}
	printf("  in order  ");
	torsh_style_print(stdout, STYLE_BAR, "%s", torsh_bar_curve(heights, columns, curve));
	printf("  0 to %s\n", torsh_size_duration(durations->p99_ns, top));
}

/* Print a histogram of the durations, in ranges of equal length up to p99. */
static void print_histogram(const struct shown_step *steps, size_t n,
			    const struct step_durations *durations)
{
	uint64_t least = UINT64_MAX, width;
	size_t counts[DURATION_ROWS + 1] = {0}, most = 1;
	char from[SIZE_TEXT_BYTES], to[SIZE_TEXT_BYTES], bar[BAR_TEXT_BYTES];

	for (size_t i = 0; i < n; i++)
		least = torsh_shown_step_duration(&steps[i]) < least
				? torsh_shown_step_duration(&steps[i])
				: least;
	width = (durations->p99_ns - least) / DURATION_ROWS + 1;
	for (size_t i = 0; i < n; i++) {
		uint64_t row = (torsh_shown_step_duration(&steps[i]) - least) / width;

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

static const char *words_of(double certainty)
{
	return certainty >= 0.9	  ? "almost certain"
	       : certainty >= 0.7 ? "likely"
	       : certainty >= 0.4 ? "uncertain"
				  : "hardly more than a guess";
}

static int compare_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Print how many steps are of each kind, and how long these take. */
static void print_kinds(const struct shown_step *steps, size_t n)
{
	uint64_t *durations = torsh_need_items(NULL, 0, n, sizeof(*durations));
	char median[SIZE_TEXT_BYTES];

	for (int kind = STEP_OF_NO_KIND + 1; kind < N_STEP_KINDS; kind++) {
		size_t n_of = 0;

		for (size_t i = 0; i < n; i++) {
			if ((int)steps[i].step->kind == kind)
				durations[n_of++] = torsh_shown_step_duration(&steps[i]);
		}
		if (!n_of)
			continue;
		qsort(durations, n_of, sizeof(*durations), compare_numbers);
		printf("  %zu of %s, median %s\n", n_of, torsh_step_kind_names[kind],
		       torsh_size_duration(durations[n_of / 2], median));
	}
	free(durations);
}

static void print_bursts(const struct steps_view *view)
{
	size_t n = 0;

	for (size_t i = 0; i < view->prepass.n; i++)
		n += view->totals[i].items ? view->prepass.items[i].steps.n_bursts : 0;
	if (n > 1)
		printf("  in %zu bursts; the time between them is in no step\n", n);
}

/* Print what the machine's memory moved, if that was counted. */
static void print_traffic(const struct steps_view *view)
{
	const struct reading *reading = view->reading;
	struct memory_traffic sums[N_PHASES + 1];
	struct traffic_report report;
	char text[TRAFFIC_TEXT_BYTES];

	torsh_traffic_report_make(&report, reading->recording, reading->processes,
				  reading->n_processes);
	if (!torsh_traffic_report_text(&report, text))
		return;
	printf("  memory: %s\n", text);
	torsh_steps_phase_traffic(view, sums);
	for (size_t i = 0; i <= N_PHASES; i++) {
		if (torsh_traffic_text(&sums[i], text))
			printf("    in %s: %s\n", i < N_PHASES ? torsh_phase_names[i] : "no phase",
			       text);
	}
}

void torsh_steps_distribution(const struct steps_view *view, const struct shown_step *steps)
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
	printf("  a step is %s: %s (certainty %.2f)\n", torsh_step_rule_texts[view->rule],
	       words_of(view->certainty), view->certainty);
	print_kinds(steps, view->n_steps);
	print_bursts(view);
	print_traffic(view);
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
