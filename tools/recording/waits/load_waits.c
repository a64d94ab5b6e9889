/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Loads what threads waited for. A message has all of a process: a later one replaces it. */
#include <stdlib.h>

#include "agent/wire/event.h"
#include "tools/base/die.h"
#include "tools/recording/load_parts.h"

void torsh_load_forget_waits(struct recorded_waits *waits)
{
	free(waits->items);
	free(waits->shorter);
	*waits = (struct recorded_waits){0};
}

static bool is_consistent(const Torsh__Waits *row)
{
	size_t n = row->n_thread;

	return row->n_kind == n && row->n_stack == n && row->n_operator_ == n &&
	       row->n_count == n && row->n_total_ns == n && row->n_longest_ns == n &&
	       row->n_unfinished == n;
}

/* Rows of kinds that this version does not have are left out, and counted. */
void torsh_load_waits(struct recording *recording, const Torsh__Waits *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	struct recorded_waits *waits;

	if (!process)
		return;
	if (!is_consistent(row)) {
		recording->n_bad_rows++;
		return;
	}
	waits = &process->waits;
	free(waits->items);
	waits->items = torsh_need_items(NULL, 0, row->n_thread, sizeof(*waits->items));
	waits->n = 0;
	for (size_t i = 0; i < row->n_thread; i++) {
		if (row->kind[i] >= N_THREAD_WAIT_KINDS) {
			recording->n_bad_rows++;
			continue;
		}
		waits->items[waits->n++] = (struct recorded_wait){
			.thread = row->thread[i],
			.kind = row->kind[i],
			.stack = row->stack[i],
			.operator= row->operator_[i],
			.n = row->count[i],
			.total_ns = row->total_ns[i],
			.longest_ns = row->longest_ns[i],
			.n_unfinished = row->unfinished[i],
		};
	}
}

void torsh_load_shorter_waits(struct recording *recording, const Torsh__ShorterWaits *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	size_t n = row->n_thread;
	struct recorded_waits *waits;

	if (!process)
		return;
	if (row->n_kind != n || row->n_count != n || row->n_total_ns != n) {
		recording->n_bad_rows++;
		return;
	}
	waits = &process->waits;
	free(waits->shorter);
	waits->shorter = torsh_need_items(NULL, 0, n, sizeof(*waits->shorter));
	waits->n_shorter = 0;
	for (size_t i = 0; i < n; i++) {
		if (row->kind[i] >= N_THREAD_WAIT_KINDS) {
			recording->n_bad_rows++;
			continue;
		}
		waits->shorter[waits->n_shorter++] =
			(struct recorded_shorter_wait){.thread = row->thread[i],
						       .kind = row->kind[i],
						       .n = row->count[i],
						       .total_ns = row->total_ns[i]};
	}
}
