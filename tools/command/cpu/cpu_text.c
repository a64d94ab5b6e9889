/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/size.h"
#include "tools/command/cpu/cpu_view.h"
#include "tools/frames/short_name.h"
#include "tools/report/selection.h"
#include "tools/report/text.h"
#include "tools/terminal/table.h"

/* With what is called, and the place: of functions and lines only. */
enum { COLUMN_TOTAL = 4, COLUMN_PLACE = 6 };

static const struct table_column columns[] = {
	{"self", TABLE_NUMBER, .drop = 0},  {"", TABLE_NUMBER, .drop = 1},
	{"", TABLE_BAR, .drop = 4},	    {"samples", TABLE_NUMBER, .drop = 3},
	{"total", TABLE_NUMBER, .drop = 0}, {"function", TABLE_NAME, .cut = CUT_MIDDLE},
	{"at", TABLE_TEXT, .drop = 2},
};

#define N_COLUMNS (sizeof(columns) / sizeof(*columns))
#define COLUMN_NAME (N_COLUMNS - 2)

static void put_code(struct table *table, const struct cpu_total *total, enum cpu_group group)
{
	const struct frame frame = {.function = total->name,
				    .file = total->file,
				    .line = total->line,
				    .module = total->library,
				    .is_python = total->is_python};
	char *name, *place;

	if (!total->name && !total->file && !total->library) {
		torsh_table_cell(table, "%s", "(no stack)");
		torsh_table_cell(table, "%s", "");
		return;
	}
	name = torsh_short_frame(&frame);
	place = torsh_short_place(&frame, NULL);
	torsh_table_cell(table, "%s", name);
	torsh_table_cell(table, "%s", group == CPU_BY_FUNCTION || total->line ? place : "");
	free(name);
	free(place);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void put_other(struct table *table, const struct cpu_total *total, enum cpu_group group)
{
	const struct recorded_process *process = total->process;

	switch (group) {
	case CPU_BY_THREAD:
		torsh_table_cell(table, "%s (tid %u of pid %u)", total->name ? total->name : "?",
				 total->thread < process->n_threads
					 ? process->threads[total->thread].tid
					 : 0,
				 process->pid);
		break;
	case CPU_BY_STEP:
		torsh_table_cell(table, "%" PRIu64, total->step);
		break;
	case CPU_BY_LIBRARY:
		torsh_table_cell(table, "%s", total->name ? base_name(total->name) : "(unknown)");
		break;
	default:
		torsh_table_cell(table, "%s", total->name ? total->name : "(none)");
	}
	torsh_table_cell(table, "%s", "");
}

static void put_total(struct table *table, const struct cpu_view *view,
		      const struct cpu_total *total, uint64_t most_ns)
{
	torsh_table_time(table, total->self_ns);
	torsh_table_percent(table, (double)total->self_ns, (double)view->samples.ns);
	torsh_table_bar(table, most_ns ? (double)total->self_ns / (double)most_ns : 0);
	torsh_table_count(table, total->self_n);
	torsh_table_time(table, total->total_ns);
	if (view->group <= CPU_BY_LINE)
		put_code(table, total, view->group);
	else
		put_other(table, total, view->group);
}

static void print_head(const struct cpu_view *view)
{
	const struct cpu_samples *samples = &view->samples;
	const struct cpu_sampling *sampling = torsh_cpu_view_sampling(view);
	char time[SIZE_TEXT_BYTES], period[SIZE_TEXT_BYTES], count[SIZE_TEXT_BYTES];

	if (!sampling) {
		puts("No samples were asked for: record with `torsh run --cpu`.");
		return;
	}
	if (samples->n_samples)
		printf("%s of processor time in %s, one every %s of a thread's (%.0f Hz)\n",
		       torsh_size_duration(samples->ns, time),
		       torsh_size_counted(samples->n_samples, "sample", count),
		       torsh_size_duration(sampling->period_ns, period),
		       1e9 / (double)sampling->period_ns);
	if (!sampling->source)
		printf("%s: %s\n", samples->n_samples ? "Sampling ended" : "Nothing was sampled",
		       sampling->reason ? sampling->reason : "no reason is known");
	if (sampling->source && sampling->reason)
		printf("%u Hz were asked for: %s\n", sampling->asked_hz, sampling->reason);
	if (samples->n_lost)
		printf("%s lost: the thread %s, or the machine was late; the next one has their time\n",
		       torsh_size_counted(samples->n_lost, "sample", count),
		       sampling->source == CPU_SOURCE_PERF
			       ? "was in the kernel or had blocked the signal"
			       : "had blocked the signal");
}

static void print_gc(const struct cpu_view *view)
{
	struct cpu_gc all = torsh_cpu_gc_sum(&view->samples);
	char time[SIZE_TEXT_BYTES], longest[SIZE_TEXT_BYTES], count[SIZE_TEXT_BYTES];

	if (!all.n)
		return;
	printf("Python's garbage collector: %s in %s, the longest %s;",
	       torsh_size_duration(all.ns, time), torsh_size_counted(all.n, "run", count),
	       torsh_size_duration(all.longest_ns, longest));
	for (unsigned i = 0; i < CPU_GC_GENERATIONS; i++)
		printf(" generation %u %s in %" PRIu64 "%s", i,
		       torsh_size_duration(view->samples.gc[i].ns, time), view->samples.gc[i].n,
		       i + 1 < CPU_GC_GENERATIONS ? "," : "\n");
}

void torsh_cpu_print_text(const struct cpu_view *view)
{
	const struct reading *reading = view->reading;
	struct table_column shown[N_COLUMNS];
	struct cpu_totals totals;
	struct table *table;
	uint64_t most_ns = 0;
	size_t n;

	torsh_text_caveats(stdout, reading->recording, reading->processes, reading->n_processes);
	torsh_selection_text(stdout, &view->prepass);
	print_head(view);
	print_gc(view);
	if (!view->samples.n_samples)
		return;
	torsh_cpu_view_totals(view, view->group, &totals);
	memcpy(shown, columns, sizeof(shown));
	shown[COLUMN_NAME].heading = torsh_cpu_group_names[view->group];
	if (view->group > CPU_BY_LIBRARY)
		shown[0].heading = "time";
	table = torsh_table_create(shown, N_COLUMNS);
	if (view->group > CPU_BY_LIBRARY)
		torsh_table_hide(table, COLUMN_TOTAL);
	if (view->group > CPU_BY_LINE)
		torsh_table_hide(table, COLUMN_PLACE);
	n = torsh_options_limit(view->options, totals.n, CPU_TEXT_LIMIT);
	for (size_t i = 0; i < n; i++)
		if (totals.items[i].self_ns > most_ns)
			most_ns = totals.items[i].self_ns;
	for (size_t i = 0; i < n; i++)
		put_total(table, view, &totals.items[i], most_ns);
	putchar('\n');
	torsh_table_print(table, stdout);
	torsh_text_more(stdout, totals.n - n);
	torsh_cpu_totals_free(&totals);
}
