/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Rows of threads, by their numbers in the process: those that changed since the last checkpoint.
 */
#include "tools/writer/output/rows/rows_parts.h"

void torsh_rows_refresh_threads(struct target *target)
{
	for (uint32_t i = 0; i < target->n_consumers; i++) {
		struct ring_consumer *consumer = target->consumers[i];
		struct folded_thread *thread = &target->state.threads[consumer->thread];

		torsh_target_count_thread(target, consumer);
		if (thread->end_stamp == consumer->codec.stamp &&
		    thread->allocs == consumer->heap.allocs &&
		    thread->frees == consumer->heap.frees)
			continue;
		thread->end_stamp = consumer->codec.stamp;
		thread->allocs = consumer->heap.allocs;
		thread->alloc_bytes = consumer->heap.alloc_bytes;
		thread->frees = consumer->heap.frees;
		thread->is_changed = true;
	}
}

static uint32_t count_changed(const struct process_state *state, uint32_t first)
{
	uint32_t n = 0;

	for (uint32_t i = first; i < state->n_threads && n < ROWS_THREADS; i++)
		n += state->threads[i].is_changed;
	return n;
}

static void put_thread(Torsh__Threads *row, uint32_t i, struct folded_thread *thread,
		       const struct clock_conversion *clock)
{
	uint64_t end_ns = torsh_clock_to_ns(clock, thread->end_stamp);

	row->tid[i] = thread->tid;
	row->name[i] = thread->name;
	row->start_ns[i] = thread->start_ns;
	/* The rate is more recent than that of the start. */
	row->end_ns[i] = end_ns > thread->start_ns ? end_ns : thread->start_ns;
	row->allocs[i] = thread->allocs;
	row->alloc_bytes[i] = thread->alloc_bytes;
	row->frees[i] = thread->frees;
	row->dropped[i] = thread->dropped;
	row->interrupt[i] = (int)thread->is_interrupt;
}

void torsh_rows_put_threads(Torsh__Threads *row, struct rows_memory *memory,
			    const struct target *target, uint32_t *next)
{
	const struct process_state *state = &target->state;
	uint32_t n = count_changed(state, *next), i = 0;

	ROWS_SET(row, process, target->number);
	ROWS_COLUMN(memory, row, number, n);
	ROWS_COLUMN(memory, row, tid, n);
	ROWS_COLUMN(memory, row, name, n);
	ROWS_COLUMN(memory, row, start_ns, n);
	ROWS_COLUMN(memory, row, end_ns, n);
	ROWS_COLUMN(memory, row, allocs, n);
	ROWS_COLUMN(memory, row, alloc_bytes, n);
	ROWS_COLUMN(memory, row, frees, n);
	ROWS_COLUMN(memory, row, dropped, n);
	ROWS_COLUMN(memory, row, interrupt, n);
	for (; i < n; ++*next) {
		struct folded_thread *thread = &state->threads[*next];

		if (!thread->is_changed)
			continue;
		row->number[i] = *next;
		put_thread(row, i++, thread, &state->clock);
	}
	if (!count_changed(state, *next))
		*next = state->n_threads;
}
