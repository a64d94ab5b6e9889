/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/cpu/task_rows.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/hash_map.h"
#include "tools/base/die.h"
#include "tools/base/task_buckets.h"
#include "tools/recording/timeline.h"

const char *const torsh_task_kind_names[N_TASK_KINDS] = {
	[TASK_REQUEST] = "request", [TASK_HTTP] = "http",	  [TASK_ASYNCIO] = "asyncio",
	[TASK_WORK_ITEM] = "work",  [TASK_GREENLET] = "greenlet",
};

struct collection {
	struct task_rows *rows;
	struct hash_map by_key; /* of items, by kind and name */
};

/* Returns the index of the row. */
static size_t row_of(struct collection *collection, uint32_t kind, const char *name)
{
	struct task_rows *rows = collection->rows;
	const size_t n_name = name ? strlen(name) + 1 : 0, n_key = 1 + n_name;
	char *key = torsh_need_items(NULL, 0, n_key, 1);
	size_t i;

	key[0] = (char)kind;
	if (name)
		memcpy(key + 1, name, n_name);
	i = torsh_hash_map_put(&collection->by_key, key, n_key, rows->n)->value;
	free(key);
	if (i < rows->n)
		return i;
	rows->items = torsh_array_reserve(rows->items, rows->n, &rows->room, sizeof(*rows->items));
	rows->items[rows->n] = (struct task_row){.kind = kind, .name = name, .min_ns = UINT64_MAX};
	return rows->n++;
}

static void add_sum(struct recorded_task_sum *sum, const struct recorded_task_sum *more)
{
	sum->turns += more->turns;
	sum->run_ns += more->run_ns;
	sum->cpu_ns += more->cpu_ns;
	sum->waits += more->waits;
	sum->wait_ns += more->wait_ns;
	sum->allocs += more->allocs;
	sum->alloc_bytes += more->alloc_bytes;
}

static void add_kept(struct task_row *row, const struct recorded_process *process,
		     const struct recorded_kept *kept)
{
	row->kept =
		torsh_array_reserve(row->kept, row->n_kept, &row->kept_room, sizeof(*row->kept));
	row->kept[row->n_kept++] = (struct task_kept){.process = process,
						      .stack = kept->stack,
						      .blocks = kept->blocks,
						      .bytes = kept->bytes};
	row->kept_blocks += kept->blocks;
	row->kept_bytes += kept->bytes;
}

static void add_name(struct task_row *row, const struct recorded_process *process,
		     const struct recorded_task_name *name)
{
	const struct recorded_tasks *tasks = &process->tasks;

	row->n_begun += name->n_begun;
	row->n_ended += name->n_ended;
	row->n_shared += name->n_shared;
	row->total_ns += name->total_ns;
	if (name->n_ended && name->min_ns < row->min_ns)
		row->min_ns = name->min_ns;
	if (name->max_ns > row->max_ns)
		row->max_ns = name->max_ns;
	add_sum(&row->sum, &name->sum);
	for (size_t i = 0; i < name->n_buckets; i++) {
		row->buckets = torsh_array_reserve(row->buckets, row->n_buckets, &row->buckets_room,
						   sizeof(*row->buckets));
		row->buckets[row->n_buckets++] = tasks->buckets[name->first_bucket + i];
	}
	for (size_t i = 0; i < name->n_kept; i++)
		add_kept(row, process, &tasks->kept[name->first_kept + i]);
}

/* ---- percentiles ----------------------------------------------------------------------------- */

static int compare_buckets(const void *a, const void *b)
{
	const struct recorded_task_bucket *x = a, *y = b;

	return (x->bucket > y->bucket) - (x->bucket < y->bucket);
}

/* The middle of the bucket with the smallest time that `percent` of them did not exceed. */
static uint64_t percentile(const struct task_row *row, uint64_t percent)
{
	uint64_t n = 0, below = 0, rank, ns;

	for (size_t i = 0; i < row->n_buckets; i++)
		n += row->buckets[i].n;
	rank = n / 100 * percent + (n % 100 * percent + 99) / 100;
	for (size_t i = 0; i < row->n_buckets; i++) {
		below += row->buckets[i].n;
		if (below < rank)
			continue;
		ns = torsh_task_bucket_ns(row->buckets[i].bucket);
		ns = ns < row->min_ns ? row->min_ns : ns;
		return ns > row->max_ns ? row->max_ns : ns;
	}
	return 0;
}

static int compare_kept(const void *a, const void *b)
{
	const struct task_kept *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

static void finish_row(struct task_row *row)
{
	if (row->n_buckets)
		qsort(row->buckets, row->n_buckets, sizeof(*row->buckets), compare_buckets);
	if (row->n_kept)
		qsort(row->kept, row->n_kept, sizeof(*row->kept), compare_kept);
	row->p50_ns = percentile(row, 50);
	row->p99_ns = percentile(row, 99);
	if (!row->n_ended)
		row->min_ns = 0;
}

/* ---- processes ------------------------------------------------------------------------------- */

/* rows_of: the row of each name of the process. */
static void add_singles(struct task_rows *rows, const struct recorded_process *process,
			const size_t *rows_of)
{
	const struct recorded_tasks *tasks = &process->tasks;

	for (size_t i = 0; i < tasks->n; i++) {
		const struct recorded_task *task = &tasks->items[i];
		struct task_row *row;

		if (task->name >= tasks->n_names || rows_of[task->name] == SIZE_MAX)
			continue;
		row = &rows->items[rows_of[task->name]];
		row->n_keeping += task->has_ended && task->live_blocks;
		rows->singles[rows->n_singles++] =
			(struct task_single){.process = process, .task = task, .row = row};
	}
}

static void add_names(struct collection *collection, const struct recorded_process *process,
		      size_t *rows_of)
{
	const struct recorded_tasks *tasks = &process->tasks;

	for (size_t i = 0; i < tasks->n_names; i++) {
		const struct recorded_task_name *name = &tasks->names[i];

		rows_of[i] = SIZE_MAX;
		if (name->kind >= N_TASK_KINDS)
			continue;
		rows_of[i] =
			row_of(collection, name->kind, torsh_timeline_label(process, name->name));
		add_name(&collection->rows->items[rows_of[i]], process, name);
	}
}

static size_t count_singles(struct recorded_process *const *processes, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += processes[i]->tasks.n;
	return count;
}

void torsh_task_rows_collect(struct task_rows *rows, struct recorded_process *const *processes,
			     size_t n)
{
	struct collection collection = {.rows = rows};
	size_t **rows_of = torsh_need_items(NULL, 0, n, sizeof(*rows_of));

	*rows = (struct task_rows){0};
	rows->singles =
		torsh_need_items(NULL, 0, count_singles(processes, n), sizeof(*rows->singles));
	for (size_t i = 0; i < n; i++) {
		const struct recorded_process *process = processes[i];

		rows_of[i] = torsh_need_items(NULL, 0, process->tasks.n_names, sizeof(**rows_of));
		add_names(&collection, process, rows_of[i]);
		rows->n_unkept += process->tasks.n_unkept;
		rows->is_sampled = rows->is_sampled || process->tasks.is_sampled;
		rows->has_waits = rows->has_waits || process->waits.n || process->waits.n_shorter;
	}
	/* The rows don't move any more. */
	for (size_t i = 0; i < n; i++) {
		add_singles(rows, processes[i], rows_of[i]);
		free(rows_of[i]);
	}
	free(rows_of);
	for (size_t i = 0; i < rows->n; i++)
		finish_row(&rows->items[i]);
	torsh_hash_map_free(&collection.by_key);
}

void torsh_task_rows_free(struct task_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		free(rows->items[i].kept);
		free(rows->items[i].buckets);
	}
	free(rows->items);
	free(rows->singles);
}
