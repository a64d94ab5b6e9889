/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What threads waited for: all rows in one chunk, which replaces the one before. */
#include "tools/writer/output/rows/rows_parts.h"

static void put_waits(Torsh__Waits *row, struct rows_memory *memory,
		      const struct thread_waits *waits)
{
	ROWS_COLUMN(memory, row, thread, waits->n);
	ROWS_COLUMN(memory, row, kind, waits->n);
	ROWS_COLUMN(memory, row, stack, waits->n);
	ROWS_COLUMN(memory, row, operator_, waits->n);
	ROWS_COLUMN(memory, row, count, waits->n);
	ROWS_COLUMN(memory, row, total_ns, waits->n);
	ROWS_COLUMN(memory, row, longest_ns, waits->n);
	ROWS_COLUMN(memory, row, unfinished, waits->n);
	for (uint32_t i = 0; i < waits->n; i++) {
		const struct thread_wait *wait = &waits->items[i];

		row->thread[i] = wait->key.thread;
		row->kind[i] = wait->key.kind;
		row->stack[i] = wait->key.stack;
		row->operator_[i] = wait->key.operator;
		row->count[i] = wait->n;
		row->total_ns[i] = wait->total_ns;
		row->longest_ns[i] = wait->longest_ns;
		row->unfinished[i] = wait->n_unfinished;
	}
}

static void put_shorter(Torsh__ShorterWaits *row, struct rows_memory *memory,
			const struct thread_waits *waits)
{
	ROWS_COLUMN(memory, row, thread, waits->n_shorter);
	ROWS_COLUMN(memory, row, kind, waits->n_shorter);
	ROWS_COLUMN(memory, row, count, waits->n_shorter);
	ROWS_COLUMN(memory, row, total_ns, waits->n_shorter);
	for (uint32_t i = 0; i < waits->n_shorter; i++) {
		row->thread[i] = waits->shorter[i].thread;
		row->kind[i] = waits->shorter[i].kind;
		row->count[i] = waits->shorter[i].n;
		row->total_ns[i] = waits->shorter[i].total_ns;
	}
}

void torsh_rows_append_waits(struct recording_file *file, struct target *target,
			     enum recording_priority priority, bool is_all)
{
	const struct thread_waits *waits = &target->state.waits;
	struct rows_state *state = target->rows;
	Torsh__Waits row = TORSH__WAITS__INIT, *rows = &row;
	Torsh__ShorterWaits shorter = TORSH__SHORTER_WAITS__INIT, *shorter_rows = &shorter;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	struct rows_memory memory = {0};
	struct extent former = state->waits_extent;

	if (!waits->n_taken || (!is_all && waits->n_taken == state->n_waits_written))
		return;
	ROWS_SET(&row, process, target->number);
	ROWS_SET(&shorter, process, target->number);
	put_waits(&row, &memory, waits);
	put_shorter(&shorter, &memory, waits);
	chunk.n_waits = chunk.n_shorter_waits = 1;
	chunk.waits = &rows;
	chunk.shorter_waits = &shorter_rows;
	if (is_all) {
		if (torsh_recording_append(file, &chunk, priority))
			state->has_missed = true;
	} else if (torsh_recording_put(file, &chunk, priority, &state->waits_extent)) {
		state->waits_extent = former;
	} else {
		torsh_recording_free_extent(file, former);
		state->n_waits_written = waits->n_taken;
	}
	torsh_rows_free(&memory);
}
