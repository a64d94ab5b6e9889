/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Loads what was found out about live blocks. */
#include "tools/recording/load_parts.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"

static void free_holders(struct recorded_verdicts *verdicts)
{
	for (size_t i = 0; i < verdicts->n_holders; i++) {
		free(verdicts->holders[i].path);
		free(verdicts->holders[i].block_stacks);
		free(verdicts->holders[i].block_bytes);
	}
	free(verdicts->holders);
	verdicts->holders = NULL;
	verdicts->n_holders = 0;
}

void torsh_load_forget_verdicts(struct recorded_verdicts *verdicts)
{
	free_holders(verdicts);
	free(verdicts->reason);
	torsh_load_clear_rows(&verdicts->rows);
}

static void load_holder(struct recorded_holder *holder, const Torsh__Holder *row)
{
	size_t n = row->n_block_stack == row->n_block_bytes ? row->n_block_stack : 0;

	*holder = (struct recorded_holder){
		.stack = row->stack,
		.root = (enum root_of_blocks)row->root_kind,
		.path = row->path ? torsh_need(strdup(row->path)) : NULL,
		.address = row->address,
		.tid = row->tid,
		.left_out = row->left_out,
		.block_stacks = torsh_need_items(NULL, 0, n, sizeof(*holder->block_stacks)),
		.block_bytes = torsh_need_items(NULL, 0, n, sizeof(*holder->block_bytes)),
		.n_blocks = n,
	};
	if (!n)
		return;
	memcpy(holder->block_stacks, row->block_stack, n * sizeof(*holder->block_stacks));
	memcpy(holder->block_bytes, row->block_bytes, n * sizeof(*holder->block_bytes));
}

static void load_holders(struct recorded_verdicts *verdicts, const Torsh__Verdicts *row)
{
	if (!row->n_holder)
		return;
	free_holders(verdicts);
	verdicts->holders = torsh_need_items(NULL, 0, row->n_holder, sizeof(*verdicts->holders));
	verdicts->n_holders = row->n_holder;
	for (size_t i = 0; i < row->n_holder; i++)
		load_holder(&verdicts->holders[i], row->holder[i]);
}

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
	load_holders(&process->verdicts, row);
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
