/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/budget/shortage.h"

#include <stdio.h>

#include "tools/base/size.h"

/*
 * Thresholds, as multiples of the size of the block tables, for the memory that is left above the
 * amount at which the writer ends.
 */
#define FEW_TIMES 4u /* new blocks lose their stacks */
#define FEWER_TIMES 2u /* existing blocks lose their stacks too */
#define TABLES_LEAST \
	(UINT64_C(1) << 20) /* smaller tables are left alone: they would save nothing */

static uint64_t table_bytes(struct target *const *targets, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += torsh_heap_table_bytes(&targets[i]->state.heap);
	return sum;
}

static void report(struct shortage *shortage, const struct memory_left *left,
		   struct process_state *state, uint64_t session_ns)
{
	char text[256], at[SIZE_TEXT_BYTES], has[SIZE_TEXT_BYTES], limit[SIZE_TEXT_BYTES];

	snprintf(
		text, sizeof(text),
		"stacks of blocks of up to 1 KiB are left out since %s after the start, as the memory control group had %s "
		"left of %s",
		torsh_size_duration(session_ns, at), torsh_size_human(left->bytes, has),
		torsh_size_human(left->limit, limit));
	torsh_process_state_note(state, "%s", text);
	if (!shortage->is_reported)
		fprintf(stderr, "torsh: %s\n", text);
	shortage->is_reported = true;
}

static void leave_out_stacks(struct process_state *state, bool is_so)
{
	struct heap *heap = &state->heap;
	uint32_t mark;

	if (is_so == heap->leaves_out_stacks)
		return;
	mark = is_so ? torsh_code_mark(&state->tables->code, ADDRESS_CUT_NO_MEMORY) : 0;
	torsh_heap_leave_out_stacks(
		heap, is_so, is_so ? torsh_stacks_below(&state->tables->stacks, 0, mark) : 0);
}

void torsh_shortage_update(struct shortage *shortage, const struct memory_left *left,
			   struct target *const *targets, uint32_t n, uint64_t session_ns)
{
	uint64_t taken, spare;

	if (left->bytes == MEMORY_NO_LIMIT)
		return;
	taken = table_bytes(targets, n);
	spare = left->bytes > left->needed ? left->bytes - left->needed : 0;
	for (uint32_t i = 0; i < n; i++) {
		struct process_state *state = &targets[i]->state;
		bool is_short = taken >= TABLES_LEAST && spare < FEW_TIMES * taken;

		if (is_short && !state->heap.small_site)
			report(shortage, left, state, session_ns);
		leave_out_stacks(state, is_short);
		if (is_short && spare < FEWER_TIMES * taken)
			torsh_heap_move_small(&state->heap);
	}
}
