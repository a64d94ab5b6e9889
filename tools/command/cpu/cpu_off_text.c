/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/command/cpu/cpu_off.h"
#include "tools/report/selection.h"
#include "tools/report/text.h"
#include "tools/terminal/table.h"

#define SITES_LIMIT 10
#define WAKERS_LIMIT 10
#define THREADS_LIMIT 10
#define STEPS_LIMIT 5
#define N_ITEMS(array) (sizeof(array) / sizeof(*(array)))

static const struct table_column kind_columns[] = {
	{"waited", TABLE_NUMBER, .drop = 0},  {"waits", TABLE_NUMBER, .drop = 0},
	{"longest", TABLE_NUMBER, .drop = 1}, {"shorter calls", TABLE_NUMBER, .drop = 2},
	{"in all", TABLE_NUMBER, .drop = 3},  {"for", TABLE_NAME, .cut = CUT_END},
};

static const struct table_column thread_columns[] = {
	{"waited", TABLE_NUMBER, .drop = 0}, {"waits", TABLE_NUMBER, .drop = 0},
	{"most for", TABLE_TEXT, .drop = 0}, {"thread", TABLE_NAME, .cut = CUT_MIDDLE},
	{"tid", TABLE_NUMBER, .drop = 1},    {"pid", TABLE_NUMBER, .drop = 2},
};

static const struct table_column waker_columns[] = {
	{"waited", TABLE_NUMBER, .drop = 0},  {"waits", TABLE_NUMBER, .drop = 0},
	{"for", TABLE_TEXT, .drop = 0},	      {"thread", TABLE_NAME, .cut = CUT_MIDDLE},
	{"tid", TABLE_NUMBER, .drop = 2},     {"ended by", TABLE_NAME, .cut = CUT_MIDDLE},
	{"its tid", TABLE_NUMBER, .drop = 1},
};

static void put_sum(struct table *table, const struct wait_sum *sum)
{
	torsh_table_time(table, sum->total_ns);
	torsh_table_count(table, sum->n);
}

static void print_kinds(const struct waits *waits)
{
	struct table *table = torsh_table_create(kind_columns, N_ITEMS(kind_columns));

	for (uint32_t kind = 0; kind < N_THREAD_WAIT_KINDS; kind++) {
		const struct wait_sum *sum = &waits->by_kind[kind];

		if (!sum->n && !sum->n_shorter)
			continue;
		put_sum(table, sum);
		torsh_table_time(table, sum->longest_ns);
		torsh_table_count(table, sum->n_shorter);
		torsh_table_time(table, sum->shorter_ns);
		torsh_table_cell(table, "%s", torsh_wait_kind_texts[kind]);
	}
	putchar('\n');
	torsh_table_print(table, stdout);
}

static void print_threads(const struct cpu_off_view *view)
{
	const struct waits *waits = &view->waits;
	struct table *table = torsh_table_create(thread_columns, N_ITEMS(thread_columns));
	size_t n = torsh_options_limit(view->options, waits->n_threads, THREADS_LIMIT);

	for (size_t i = 0; i < n; i++) {
		const struct wait_thread *thread = &waits->threads[i];
		uint32_t most = 0, tid;
		const char *name = torsh_wait_thread_name(thread->process, thread->thread, &tid);

		for (uint32_t kind = 1; kind < N_THREAD_WAIT_KINDS; kind++)
			most = thread->by_kind[kind].total_ns > thread->by_kind[most].total_ns
				       ? kind
				       : most;
		put_sum(table, &thread->all);
		torsh_table_cell(table, "%s", thread->all.n ? torsh_wait_kind_names[most] : "");
		torsh_table_cell(table, "%s", name ? name : "?");
		torsh_table_cell(table, "%" PRIu32, tid);
		torsh_table_cell(table, "%" PRIu32, thread->process->pid);
	}
	putchar('\n');
	torsh_table_print(table, stdout);
	torsh_text_more(stdout, waits->n_threads - n);
}

static void put_thread(struct table *table, const struct recorded_process *process, uint32_t thread)
{
	uint32_t tid;
	const char *name = torsh_wait_thread_name(process, thread, &tid);

	torsh_table_cell(table, "%s", name ? name : "?");
	torsh_table_cell(table, "%" PRIu32, tid);
}

static void print_wakers(const struct cpu_off_view *view)
{
	const struct wait_wakers *wakers = &view->wakers;
	struct table *table = torsh_table_create(waker_columns, N_ITEMS(waker_columns));
	size_t n = torsh_options_limit(view->options, wakers->n, WAKERS_LIMIT);

	for (size_t i = 0; i < n; i++) {
		const struct wait_waker *row = &wakers->items[i];

		torsh_table_time(table, row->total_ns);
		torsh_table_count(table, row->n);
		torsh_table_cell(table, "%s", torsh_wait_kind_names[row->kind]);
		put_thread(table, row->process, row->thread);
		if (row->waker) {
			put_thread(table, row->process, row->waker - 1);
		} else {
			torsh_table_cell(table, "not known");
			torsh_table_cell(table, "%s", "");
		}
	}
	putchar('\n');
	torsh_table_print(table, stdout);
	torsh_text_more(stdout, wakers->n - n);
}

static void print_sites(const struct cpu_off_view *view)
{
	const struct waits *waits = &view->waits;
	size_t n = torsh_options_limit(view->options, waits->n_sites, SITES_LIMIT);

	for (size_t i = 0; i < n; i++) {
		const struct wait_site *site = &waits->sites[i];
		const char *operator= torsh_timeline_label(site->process, site->operator);
		char total[SIZE_TEXT_BYTES], count[SIZE_TEXT_BYTES], longest[SIZE_TEXT_BYTES],
			threads[SIZE_TEXT_BYTES];

		printf("\n%zu. %s in %s of %s, the longest %s\n", i + 1,
		       torsh_size_duration(site->sum.total_ns, total),
		       torsh_size_counted(site->sum.n, "wait", count),
		       torsh_size_counted(site->n_threads, "thread", threads),
		       torsh_size_duration(site->sum.longest_ns, longest));
		printf("   for %s%s\n", torsh_wait_kind_texts[site->kind],
		       site->sum.n_unfinished ? ", until the end" : "");
		if (operator)
			printf("   in the operator %s\n", operator);
		if (site->stack)
			torsh_text_recorded_stack(stdout, site->process, site->stack,
						  view->reading->symbols, view->options->view);
	}
	torsh_text_more(stdout, waits->n_sites - n);
}

/* ---- steps ----------------------------------------------------------------------------------- */

struct shown {
	const struct prepass_process *of;
	const struct step *step;
	const struct step_parts *parts;
};

static uint64_t duration_of(const struct shown *shown)
{
	return shown->step->end_ns - shown->step->start_ns;
}

static int compare_shown(const void *a, const void *b)
{
	const struct shown *x = a, *y = b;

	if (duration_of(x) != duration_of(y))
		return duration_of(x) < duration_of(y) ? 1 : -1;
	return (x->step->start_ns > y->step->start_ns) - (x->step->start_ns < y->step->start_ns);
}

#define LINE_COLUMNS 78u

/* "step 12: 48 ms = 31 ms operators + 9 ms between operators + ...", in lines that a terminal has. */
static void print_step(const struct shown *shown)
{
	char text[SIZE_TEXT_BYTES], line[2 * SIZE_TEXT_BYTES];
	size_t column;
	bool is_first = true;

	column = (size_t)printf("  step %" PRIu64 ": %s", shown->step->number,
				torsh_size_duration(duration_of(shown), text));
	for (int part = 0; part < N_STEP_PARTS; part++) {
		if (!shown->parts->ns[part])
			continue;
		snprintf(line, sizeof(line), " %c %s %s", is_first ? '=' : '+',
			 torsh_size_duration(shown->parts->ns[part], text),
			 torsh_step_part_texts[part]);
		if (column + strlen(line) > LINE_COLUMNS)
			column = (size_t)printf("\n       ") - 1;
		column += strlen(line);
		fputs(line, stdout);
		is_first = false;
	}
	putchar('\n');
}

static void print_steps(const struct cpu_off_view *view)
{
	struct shown *steps = torsh_need_items(NULL, 0, view->n_steps, sizeof(*steps));
	size_t n = 0, n_shown = torsh_options_limit(view->options, view->n_steps, STEPS_LIMIT);

	for (size_t i = 0; i < view->prepass.n; i++) {
		const struct prepass_process *of = &view->prepass.items[i];

		for (size_t k = 0; view->parts[i] && k < of->steps.n; k++)
			steps[n++] = (struct shown){
				.of = of, .step = &of->steps.items[k], .parts = &view->parts[i][k]};
	}
	qsort(steps, n, sizeof(*steps), compare_shown);
	putchar('\n');
	torsh_text_heading(stdout, "What the longest steps consist of");
	for (size_t i = 0; i < n_shown; i++)
		print_step(&steps[i]);
	torsh_text_more(stdout, n - n_shown);
	free(steps);
}

void torsh_cpu_off_text(const struct cpu_off_view *view)
{
	const struct reading *reading = view->reading;
	const struct wait_sum *all = &view->waits.all;
	char total[SIZE_TEXT_BYTES], count[SIZE_TEXT_BYTES], shorter[SIZE_TEXT_BYTES],
		shorter_ns[SIZE_TEXT_BYTES];

	torsh_text_caveats(stdout, reading->recording, reading->processes, reading->n_processes);
	torsh_selection_text(stdout, &view->prepass);
	if (!view->is_recorded) {
		torsh_text_heading(stdout, "Waits were not recorded");
		printf("  TORSH_PROFILER_ACTIVITIES does not name waits.\n");
		return;
	}
	torsh_text_heading(stdout, "Threads waited %sfor %s, in %s of 50 us or more",
			   view->is_gil ? "for Python's lock " : "",
			   torsh_size_duration(all->total_ns, total),
			   torsh_size_counted(all->n, "wait", count));
	printf("  %s took %s in all. Times of several threads add up.\n",
	       torsh_size_counted(all->n_shorter, "shorter call", shorter),
	       torsh_size_duration(all->shorter_ns, shorter_ns));
	if (view->waits.n_threads) {
		if (!view->is_gil)
			print_kinds(&view->waits);
		print_threads(view);
		if (view->wakers.n)
			print_wakers(view);
		print_sites(view);
	}
	if (view->n_steps)
		print_steps(view);
}
