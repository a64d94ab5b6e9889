/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Loads requests and tasks. A message has all of a process: a later one replaces it. */
#include <stdlib.h>

#include "agent/wire/event.h"
#include "tools/base/die.h"
#include "tools/base/task_buckets.h"
#include "tools/recording/load_parts.h"

enum { ROW_IS_SHARED = 1, ROW_HAS_ENDED = 2 };

void torsh_load_forget_tasks(struct recorded_tasks *tasks)
{
	free(tasks->items);
	free(tasks->names);
	free(tasks->buckets);
	free(tasks->kept);
	*tasks = (struct recorded_tasks){0};
}

static bool are_whole(const Torsh__Tasks *row)
{
	const size_t n = row->n_name;

	return row->n_task == n && row->n_parent == n && row->n_trace_high == n &&
	       row->n_trace_low == n && row->n_span == n && row->n_flags == n &&
	       row->n_begin_ns == n && row->n_duration_ns == n && row->n_turns == n &&
	       row->n_run_ns == n && row->n_cpu_ns == n && row->n_waits == n &&
	       row->n_wait_ns == n && row->n_allocs == n && row->n_alloc_bytes == n &&
	       row->n_peak_bytes == n && row->n_end_blocks == n && row->n_end_bytes == n &&
	       row->n_live_blocks == n && row->n_live_bytes == n;
}

static struct recorded_task task_of(const Torsh__Tasks *row, size_t i)
{
	return (struct recorded_task){
		.name = row->name[i],
		.task = row->task[i],
		.is_shared = row->flags[i] & ROW_IS_SHARED,
		.has_ended = row->flags[i] & ROW_HAS_ENDED,
		.trace_high = row->trace_high[i],
		.trace_low = row->trace_low[i],
		.span = row->span[i],
		.begin_ns = row->begin_ns[i],
		.duration_ns = row->duration_ns[i],
		.sum = {.turns = row->turns[i],
			.run_ns = row->run_ns[i],
			.cpu_ns = row->cpu_ns[i],
			.waits = row->waits[i],
			.wait_ns = row->wait_ns[i],
			.allocs = row->allocs[i],
			.alloc_bytes = row->alloc_bytes[i]},
		.peak_bytes = row->peak_bytes[i],
		.end_blocks = row->end_blocks[i],
		.end_bytes = row->end_bytes[i],
		.live_blocks = row->live_blocks[i],
		.live_bytes = row->live_bytes[i],
	};
}

void torsh_load_tasks(struct recording *recording, const Torsh__Tasks *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	struct recorded_tasks *tasks;

	if (!process)
		return;
	if (!are_whole(row)) {
		recording->n_bad_rows++;
		return;
	}
	tasks = &process->tasks;
	free(tasks->items);
	tasks->items = torsh_need_items(NULL, 0, row->n_name, sizeof(*tasks->items));
	for (size_t i = 0; i < row->n_name; i++)
		tasks->items[i] = task_of(row, i);
	tasks->n = row->n_name;
	tasks->is_sampled = row->is_sampled;
	tasks->n_unkept = row->unkept;
}

static size_t sum_of(const uint32_t *numbers, size_t n)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += numbers[i];
	return sum;
}

static bool are_names_whole(const Torsh__TaskNames *row)
{
	const size_t n = row->n_kind;

	return row->n_name == n && row->n_begun == n && row->n_ended == n && row->n_shared == n &&
	       row->n_total_ns == n && row->n_min_ns == n && row->n_max_ns == n &&
	       row->n_turns == n && row->n_run_ns == n && row->n_cpu_ns == n && row->n_waits == n &&
	       row->n_wait_ns == n && row->n_allocs == n && row->n_alloc_bytes == n &&
	       row->n_n_buckets == n && row->n_n_kept == n && row->n_bucket == row->n_in_bucket &&
	       row->n_kept_stack == row->n_kept_blocks && row->n_kept_stack == row->n_kept_bytes &&
	       sum_of(row->n_buckets, n) == row->n_bucket &&
	       sum_of(row->n_kept, n) == row->n_kept_stack;
}

static struct recorded_task_name name_of(const Torsh__TaskNames *row, size_t i)
{
	return (struct recorded_task_name){
		.kind = row->kind[i],
		.name = row->name[i],
		.n_begun = row->begun[i],
		.n_ended = row->ended[i],
		.n_shared = row->shared[i],
		.total_ns = row->total_ns[i],
		.min_ns = row->min_ns[i],
		.max_ns = row->max_ns[i],
		.sum = {.turns = row->turns[i],
			.run_ns = row->run_ns[i],
			.cpu_ns = row->cpu_ns[i],
			.waits = row->waits[i],
			.wait_ns = row->wait_ns[i],
			.allocs = row->allocs[i],
			.alloc_bytes = row->alloc_bytes[i]},
		.n_buckets = row->n_buckets[i],
		.n_kept = row->n_kept[i],
	};
}

static void load_parts(struct recorded_tasks *tasks, const Torsh__TaskNames *row)
{
	size_t first_bucket = 0, first_kept = 0;

	for (size_t i = 0; i < tasks->n_names; i++) {
		tasks->names[i].first_bucket = first_bucket;
		tasks->names[i].first_kept = first_kept;
		first_bucket += tasks->names[i].n_buckets;
		first_kept += tasks->names[i].n_kept;
	}
	for (size_t i = 0; i < row->n_bucket; i++)
		tasks->buckets[i] = (struct recorded_task_bucket){
			.bucket = row->bucket[i] < TASK_BUCKETS ? row->bucket[i] : TASK_BUCKETS - 1,
			.n = row->in_bucket[i]};
	for (size_t i = 0; i < row->n_kept_stack; i++)
		tasks->kept[i] = (struct recorded_kept){.stack = row->kept_stack[i],
							.blocks = row->kept_blocks[i],
							.bytes = row->kept_bytes[i]};
}

void torsh_load_task_names(struct recording *recording, const Torsh__TaskNames *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	struct recorded_tasks *tasks;

	if (!process)
		return;
	if (!are_names_whole(row)) {
		recording->n_bad_rows++;
		return;
	}
	tasks = &process->tasks;
	free(tasks->names);
	free(tasks->buckets);
	free(tasks->kept);
	tasks->n_names = row->n_kind;
	tasks->names = torsh_need_items(NULL, 0, tasks->n_names, sizeof(*tasks->names));
	tasks->buckets = torsh_need_items(NULL, 0, row->n_bucket, sizeof(*tasks->buckets));
	tasks->kept = torsh_need_items(NULL, 0, row->n_kept_stack, sizeof(*tasks->kept));
	for (size_t i = 0; i < tasks->n_names; i++)
		tasks->names[i] = name_of(row, i);
	load_parts(tasks, row);
}
