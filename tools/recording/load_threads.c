/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Loads the threads of a chunk into a process's table, indexed by their number, which events refer
 * to.
 */
#include "tools/base/containers/array.h"
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
