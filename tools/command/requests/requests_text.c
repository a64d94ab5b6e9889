/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <inttypes.h>
#include <stdio.h>

#include "tools/base/size.h"
#include "tools/command/requests/requests_view.h"
#include "tools/recording/timeline.h"
#include "tools/report/text.h"
#include "tools/terminal/table.h"

#define NAMES_LIMIT 20
#define SINGLES_LIMIT 10
#define KEPT_LIMIT 3
#define N_ITEMS(array) (sizeof(array) / sizeof(*(array)))

static const struct table_column name_columns[] = {
	{"count", TABLE_NUMBER, .drop = 0},	{"p50", TABLE_NUMBER, .drop = 4},
	{"p99", TABLE_NUMBER, .drop = 1},	{"slowest", TABLE_NUMBER, .drop = 3},
	{"CPU", TABLE_NUMBER, .drop = 0},	{"waited", TABLE_NUMBER, .drop = 6},
	{"allocated", TABLE_NUMBER, .drop = 0}, {"kept", TABLE_NUMBER, .drop = 0},
	{"kept by", TABLE_NUMBER, .drop = 2},	{"kind", TABLE_TEXT, .drop = 5},
	{"name", TABLE_NAME, .cut = CUT_END},
};

static const struct table_column single_columns[] = {
	{"took", TABLE_NUMBER, .drop = 0},	{"on a thread", TABLE_NUMBER, .drop = 3},
	{"CPU", TABLE_NUMBER, .drop = 0},	{"waited", TABLE_NUMBER, .drop = 5},
	{"allocated", TABLE_NUMBER, .drop = 0}, {"peak", TABLE_NUMBER, .drop = 2},
	{"kept", TABLE_NUMBER, .drop = 0},	{"pid", TABLE_NUMBER, .drop = 6},
	{"trace", TABLE_TEXT, .drop = 1},	{"task", TABLE_TEXT, .drop = 4},
	{"name", TABLE_NAME, .cut = CUT_END},
};

enum { COLUMN_WAITED = 5, COLUMN_SINGLE_WAITED = 3, COLUMN_TRACE = 8, COLUMN_TASK = 9 };

/* The time or the size, or "-". */
static void put_time(struct table *table, bool is_known, uint64_t ns)
{
	if (is_known)
		torsh_table_time(table, ns);
	else
		torsh_table_unknown(table);
}

static void put_bytes(struct table *table, bool is_known, uint64_t bytes)
{
	if (is_known)
		torsh_table_bytes(table, bytes);
	else
		torsh_table_unknown(table);
}

static void put_row(struct table *table, const struct task_row *row)
{
	bool is_known = !torsh_requests_is_shared(row);

	torsh_table_count(table, row->n_begun);
	put_time(table, row->n_ended, row->p50_ns);
	put_time(table, row->n_ended, row->p99_ns);
	put_time(table, row->n_ended, row->max_ns);
	put_time(table, is_known, row->sum.cpu_ns);
	put_time(table, is_known, row->sum.wait_ns);
	put_bytes(table, is_known, row->sum.alloc_bytes);
	put_bytes(table, is_known, row->kept_bytes);
	if (is_known)
		torsh_table_count(table, row->n_keeping);
	else
		torsh_table_unknown(table);
	torsh_table_cell(table, "%s", torsh_task_kind_names[row->kind]);
	torsh_table_cell(table, "%s", row->name ? row->name : "?");
}

static void print_names(const struct requests_view *view)
{
	struct table *table = torsh_table_create(name_columns, N_ITEMS(name_columns));
	size_t n = torsh_options_limit(view->options, view->rows.n, NAMES_LIMIT);

	for (size_t i = 0; i < n; i++)
		put_row(table, view->order[i]);
	if (!view->rows.has_waits)
		torsh_table_hide(table, COLUMN_WAITED);
	torsh_table_print(table, stdout);
	torsh_text_more(stdout, view->rows.n - n);
}

static void put_single(struct table *table, const struct task_single *single)
{
	const struct recorded_task *task = single->task;
	const char *name = torsh_timeline_label(single->process, task->task), *trace;
	bool is_known = !task->is_shared;
	char text[REQUESTS_TRACE_BYTES];

	put_time(table, task->has_ended, task->duration_ns);
	put_time(table, is_known, task->sum.run_ns);
	put_time(table, is_known, task->sum.cpu_ns);
	put_time(table, is_known, task->sum.wait_ns);
	put_bytes(table, is_known, task->sum.alloc_bytes);
	put_bytes(table, is_known, task->peak_bytes);
	put_bytes(table, is_known && task->has_ended, task->live_bytes);
	torsh_table_cell(table, "%" PRIu32, single->process->pid);
	trace = torsh_requests_trace(task, text);
	torsh_table_cell(table, "%s", trace ? trace : "");
	torsh_table_cell(table, "%s", name ? name : "");
	torsh_table_cell(table, "%s", single->row->name ? single->row->name : "?");
}

static void print_singles(const struct requests_view *view)
{
	struct table *table = torsh_table_create(single_columns, N_ITEMS(single_columns));
	size_t n = torsh_options_limit(view->options, view->rows.n_singles, SINGLES_LIMIT);
	bool has_trace = false, has_task = false;

	for (size_t i = 0; i < n; i++) {
		const struct recorded_task *task = view->rows.singles[i].task;

		has_trace = has_trace || task->trace_high || task->trace_low;
		has_task = has_task || task->task;
		put_single(table, &view->rows.singles[i]);
	}
	if (!view->rows.has_waits)
		torsh_table_hide(table, COLUMN_SINGLE_WAITED);
	if (!has_trace)
		torsh_table_hide(table, COLUMN_TRACE);
	if (!has_task)
		torsh_table_hide(table, COLUMN_TASK);
	putchar('\n');
	torsh_text_heading(stdout, "One by one");
	torsh_table_print(table, stdout);
	torsh_text_more(stdout, view->rows.n_singles - n);
	if (view->rows.n_unkept)
		printf("%" PRIu64 " that were neither slow nor large are only in the sums.\n",
		       view->rows.n_unkept);
}

static void print_kept(const struct requests_view *view, const struct task_row *row)
{
	size_t n = row->n_kept < KEPT_LIMIT ? row->n_kept : KEPT_LIMIT;
	char bytes[SIZE_TEXT_BYTES], blocks[SIZE_TEXT_BYTES];

	printf("\n%s: %" PRIu64 " of %" PRIu64 " kept %s in %s\n", row->name ? row->name : "?",
	       row->n_keeping, row->n_ended, torsh_size_human(row->kept_bytes, bytes),
	       torsh_size_counted(row->kept_blocks, view->rows.is_sampled ? "sample" : "block",
				  blocks));
	for (size_t i = 0; i < n; i++) {
		const struct task_kept *kept = &row->kept[i];

		printf("   %s in %s\n", torsh_size_human(kept->bytes, bytes),
		       torsh_size_counted(kept->blocks, view->rows.is_sampled ? "sample" : "block",
					  blocks));
		if (kept->stack)
			torsh_text_recorded_stack(stdout, kept->process, kept->stack,
						  view->reading->symbols, view->options->view);
	}
}

void torsh_requests_text(const struct requests_view *view)
{
	const struct reading *reading = view->reading;
	bool has_heading = false;

	torsh_text_caveats(stdout, reading->recording, reading->processes, reading->n_processes);
	if (!view->rows.n) {
		torsh_text_heading(stdout, "No requests or tasks were recorded.");
		printf("A program tells of requests by torsh.request or torsh.h, a server by torsh.asgi, "
		       "torsh.wsgi or torsh.gunicorn. TORSH_PROFILER_REQUESTS=1 records HTTP/1 by sockets, and "
		       "asyncio's tasks, greenlets and work items of concurrent.futures.\n");
		return;
	}
	torsh_text_heading(stdout, "Requests and tasks by name");
	print_names(view);
	print_singles(view);
	for (size_t i = 0; i < view->rows.n; i++) {
		if (!view->order[i]->n_kept)
			continue;
		if (!has_heading) {
			putchar('\n');
			torsh_text_heading(stdout, "Kept after they ended");
		}
		has_heading = true;
		print_kept(view, view->order[i]);
	}
}
