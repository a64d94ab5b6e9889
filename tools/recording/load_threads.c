/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Loads the threads of a chunk into a process's table, indexed by their number, which events refer
 * to, and what they all ran and waited for a CPU.
 */
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/recording/load_parts.h"

static bool is_consistent(const Torsh__Threads *row)
{
	size_t n = row->n_tid;

	return row->n_name == n && row->n_start_ns == n && row->n_end_ns == n &&
	       row->n_allocs == n && row->n_alloc_bytes == n && row->n_frees == n &&
	       row->n_dropped == n && (!row->n_number || row->n_number == n);
}

/* Recordings without numbers have all threads of the process in each message, in order. */
static size_t number_of(const Torsh__Threads *row, size_t i)
{
	return row->n_number ? row->number[i] : i;
}

/* NULL: the number is out of range. */
static struct recorded_thread *thread_of(struct recording *recording,
					 struct recorded_process *process, size_t number)
{
	if (!torsh_load_can_reach(recording, process->n_threads, number, sizeof(*process->threads)))
		return NULL;
	process->threads = torsh_array_extend(process->threads, number + 1, &process->threads_room,
					      sizeof(*process->threads));
	if (number >= process->n_threads)
		process->n_threads = number + 1;
	return &process->threads[number];
}

void torsh_load_threads(struct recording *recording, const Torsh__Threads *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);

	if (!process)
		return;
	if (!is_consistent(row)) {
		recording->n_bad_rows++;
		return;
	}
	for (size_t i = 0; i < row->n_tid; i++) {
		struct recorded_thread *thread = thread_of(recording, process, number_of(row, i));

		if (!thread)
			continue;
		thread->is_known = true;
		thread->tid = row->tid[i];
		if (*row->name[i])
			torsh_load_text(&thread->name, row->name[i]);
		thread->start_ns = row->start_ns[i];
		thread->end_ns = row->end_ns[i];
		thread->allocs = row->allocs[i];
		thread->alloc_bytes = row->alloc_bytes[i];
		thread->frees = row->frees[i];
		thread->dropped = row->dropped[i];
	}
}

/* The columns of sums over time. */
struct columns {
	const uint64_t *at_ns, *sums[2];
	size_t n, n_sums[2];
};

static bool grows(const uint64_t *column, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		if (column[i] < column[i - 1])
			return false;
	}
	return true;
}

/* Sums only grow, and so do times. */
static bool is_series(const struct columns *columns)
{
	for (size_t k = 0; k < 2; k++) {
		if (columns->n_sums[k] &&
		    (columns->n_sums[k] != columns->n || !grows(columns->sums[k], columns->n)))
			return false;
	}
	return grows(columns->at_ns, columns->n);
}

static void load_sums(struct recorded_sums *to, const struct columns *columns)
{
	free(to->points);
	*to = (struct recorded_sums){
		.points = torsh_need_items(NULL, 0, columns->n, sizeof(*to->points)),
		.n = columns->n,
		.is_known = {columns->n_sums[0] != 0, columns->n_sums[1] != 0},
	};
	for (size_t i = 0; i < columns->n; i++) {
		to->points[i].at_ns = columns->at_ns[i];
		for (size_t k = 0; k < 2; k++)
			to->points[i].sums[k] = columns->n_sums[k] ? columns->sums[k][i] : 0;
	}
}

void torsh_load_cpu_time(struct recording *recording, const Torsh__CpuTime *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	const struct columns columns = {.at_ns = row->at_ns,
					.sums = {row->ran_ns, row->waited_ns},
					.n = row->n_at_ns,
					.n_sums = {row->n_ran_ns, row->n_waited_ns}};

	if (!process)
		return;
	if (row->n_ran_ns == row->n_waited_ns && is_series(&columns))
		load_sums(&process->cpu_time, &columns);
	else
		recording->n_bad_rows++;
}

void torsh_load_cpu_supply(struct recording *recording, const Torsh__CpuSupply *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	const struct columns columns = {.at_ns = row->at_ns,
					.sums = {row->throttled_ns, row->stolen_ns},
					.n = row->n_at_ns,
					.n_sums = {row->n_throttled_ns, row->n_stolen_ns}};

	if (!process)
		return;
	if (is_series(&columns))
		load_sums(&process->cpu_supply, &columns);
	else
		recording->n_bad_rows++;
}
