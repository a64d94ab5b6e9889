/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh requests: the requests that a program served and the tasks that it ran. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/command/command.h"
#include "tools/command/requests/requests_view.h"
#include "tools/command/sort.h"

static const char doc[] =
	"Show the requests that a program served and the tasks that it ran, by name and one by one: how long they took, "
	"what threads did for them, what they allocated, and what of it is still there after they ended.\v"
	"Requests are told by torsh.request, torsh.asgi, torsh.wsgi, torsh.gunicorn, torsh.httpd or torsh.h; with "
	"TORSH_PROFILER_REQUESTS=1 also those of HTTP/1 by their sockets, asyncio's tasks, greenlets, gevent's too, and work items of "
	"concurrent.futures. What counts for one also counts for the one in which it began. Percentiles are exact to 1 %. Kept are blocks of requests that have ended; where most "
	"requests of a name keep some, they leak.";

struct requests_options {
	struct read_options read;
	const struct sort_key *rows, *singles;
};

enum { KEY_SORT = 0x2000 };

static const struct argp_option own_options[] = {
	{"sort", KEY_SORT, "KEY", 0, "time (default), bytes, leaked or cpu", 0},
	{0},
};

SORT_WEIGHT(time, struct task_row *const, (*row)->total_ns)
SORT_WEIGHT(bytes, struct task_row *const, (*row)->sum.alloc_bytes)
SORT_WEIGHT(leaked, struct task_row *const, (*row)->kept_bytes)
SORT_WEIGHT(cpu, struct task_row *const, (*row)->sum.cpu_ns)

static const struct sort_key row_keys[] = {SORT_KEY(time) SORT_KEY(bytes) SORT_KEY(leaked)
						   SORT_KEY(cpu){0}};

SORT_WEIGHT(single_time, struct task_single, row->task->duration_ns)
SORT_WEIGHT(single_bytes, struct task_single, row->task->sum.alloc_bytes)
SORT_WEIGHT(single_leaked, struct task_single, row->task->has_ended ? row->task->live_bytes : 0)
SORT_WEIGHT(single_cpu, struct task_single, row->task->sum.cpu_ns)

/* In the order of row_keys. */
static const struct sort_key single_keys[] = {SORT_KEY(single_time) SORT_KEY(single_bytes) SORT_KEY(
	single_leaked) SORT_KEY(single_cpu){0}};

static error_t parse_requests(int key, char *argument, struct argp_state *state)
{
	struct requests_options *options = state->input;

	if (key != KEY_SORT)
		return ARGP_ERR_UNKNOWN;
	options->rows = torsh_sort_key(state, row_keys, argument);
	options->singles = &single_keys[options->rows - row_keys];
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct task_row *x = *(struct task_row *const *)a, *y = *(struct task_row *const *)b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return strcmp(x->name ? x->name : "", y->name ? y->name : "");
}

static int compare_singles(const void *a, const void *b)
{
	const struct task_single *x = a, *y = b;

	if (x->task->begin_ns != y->task->begin_ns)
		return x->task->begin_ns < y->task->begin_ns ? -1 : 1;
	return (x->process->number > y->process->number) -
	       (x->process->number < y->process->number);
}

const char *torsh_requests_trace(const struct recorded_task *task, char text[REQUESTS_TRACE_BYTES])
{
	if (!task->trace_high && !task->trace_low)
		return NULL;
	snprintf(text, REQUESTS_TRACE_BYTES, "%016" PRIx64 "%016" PRIx64, task->trace_high,
		 task->trace_low);
	return text;
}

int torsh_command_requests(int argc, char **argv)
{
	struct requests_options options = {
		.read.without = READING_WITHOUT_HEAP, .rows = row_keys, .singles = single_keys};
	struct requests_view view = {.options = &options.read};
	struct reading reading;

	torsh_options_parse(argc, argv, doc, own_options, parse_requests, &options, &options.read);
	torsh_reading_open(&reading, &options.read);
	view.reading = &reading;
	torsh_task_rows_collect(&view.rows, reading.processes, reading.n_processes);
	view.order = torsh_need_items(NULL, 0, view.rows.n, sizeof(*view.order));
	for (size_t i = 0; i < view.rows.n; i++)
		view.order[i] = &view.rows.items[i];
	torsh_sort_rows(view.order, view.rows.n, sizeof(*view.order), options.rows, compare_rows);
	torsh_sort_rows(view.rows.singles, view.rows.n_singles, sizeof(*view.rows.singles),
			options.singles, compare_singles);
	if (options.read.is_json)
		torsh_requests_json(&view);
	else
		torsh_requests_text(&view);
	free(view.order);
	torsh_task_rows_free(&view.rows);
	torsh_reading_close(&reading, &options.read);
	return TORSH_EXIT_DONE;
}
