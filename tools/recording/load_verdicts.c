/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Loads what was found out about live blocks. */
#include "tools/recording/load_parts.h"

static void begin_verdicts(struct recorded_verdicts *verdicts, const Torsh__Verdicts *row)
{
	/* A large table comes in several messages with the same time. */
	if (!verdicts->is_tried || row->at_ns != verdicts->at_ns)
		torsh_load_clear_rows(&verdicts->rows);
	verdicts->is_tried = true;
	verdicts->is_judged = !row->reason;
	verdicts->has_begin = row->has_begin;
	verdicts->at_ns = row->at_ns;
	verdicts->stopped_ns = row->stopped_ns;
	verdicts->read_bytes = row->read_bytes;
	verdicts->n_threads = row->threads;
	torsh_load_text(&verdicts->reason, row->reason);
}

void torsh_load_verdicts(struct recording *recording, const Torsh__Verdicts *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	size_t n = row->n_stack;

	if (!process)
		return;
	if (row->n_verdict != n || row->n_blocks != n || row->n_bytes != n) {
		recording->n_bad_rows++;
		return;
	}
	begin_verdicts(&process->verdicts, row);
	for (size_t i = 0; i < n; i++) {
		struct recorded_verdict *verdict =
			torsh_load_row(recording, process, &process->verdicts.rows, row->stack[i],
				       sizeof(*verdict));

		if (!verdict || row->verdict[i] >= N_BLOCK_CLASSES)
			continue;
		verdict->blocks[row->verdict[i]] = row->blocks[i];
		verdict->bytes[row->verdict[i]] = row->bytes[i];
	}
}
