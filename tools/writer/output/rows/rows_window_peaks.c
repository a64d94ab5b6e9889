/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What was live at the peaks of windows that programs opened. */
#include "tools/writer/output/rows/rows_parts.h"

uint32_t torsh_rows_put_window_peak(Torsh__WindowPeak *row, struct rows_memory *memory,
				    const struct target *target, const struct window_peak *peak,
				    uint32_t first)
{
	const struct heap *heap = &target->state.heap;
	uint32_t n = peak->n_sites - first < ROWS_TOTALS ? peak->n_sites - first : ROWS_TOTALS;

	ROWS_SET(row, process, target->number);
	ROWS_SET(row, number, peak->number);
	ROWS_SET(row, piece, first != 0);
	ROWS_SET(row, at_ns, torsh_clock_to_ns(&target->state.clock, peak->stamp));
	ROWS_SET(row, bytes, peak->bytes);
	ROWS_SET(row, blocks, peak->n);
	if (peak->joint_bytes)
		ROWS_SET(row, joint_bytes, peak->joint_bytes);
	ROWS_COLUMN(memory, row, stack, n);
	ROWS_COLUMN(memory, row, stack_bytes, n);
	ROWS_COLUMN(memory, row, stack_blocks, n);
	for (uint32_t i = 0; i < n; i++) {
		row->stack[i] = heap->sites[peak->sites[first + i].site].stack;
		row->stack_bytes[i] = peak->sites[first + i].bytes;
		row->stack_blocks[i] = peak->sites[first + i].n;
	}
	return first + n;
}
