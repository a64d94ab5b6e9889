/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Loads chunks with moments of the heap. */
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/recording/load_parts.h"

#define MOMENTS_MAX 4096u /* per process; a file with more is rejected as damaged */

/* Returns the moment with that number, and creates it if it is new; NULL: there are too many. */
static struct recorded_moment *take_moment(struct recorded_process *process, uint32_t number)
{
	struct recorded_moment *items;
	size_t i = process->n_moments;

	while (i > 0 && process->moments[i - 1].number > number)
		i--;
	if (i > 0 && process->moments[i - 1].number == number)
		return &process->moments[i - 1];
	if (process->n_moments == MOMENTS_MAX)
		return NULL;
	items = process->moments = torsh_array_reserve(process->moments, process->n_moments,
						       &process->moments_room, sizeof(*items));
	memmove(items + i + 1, items + i, (process->n_moments++ - i) * sizeof(*items));
	items[i] = (struct recorded_moment){.number = number};
	return &items[i];
}

static bool are_columns_equal(const Torsh__Moments *row)
{
	size_t n = row->n_number, n_stacks = 0;

	if (row->n_piece != n || row->n_at_ns != n || row->n_kind != n || row->n_name != n ||
	    row->n_bytes != n || row->n_blocks != n || row->n_n_stacks != n ||
	    row->n_stack_bytes != row->n_stack || row->n_stack_blocks != row->n_stack)
		return false;
	for (size_t i = 0; i < n; i++)
		n_stacks += row->n_stacks[i];
	return n_stacks == row->n_stack;
}

static void load_usage(struct recording *recording, const struct recorded_process *process,
		       struct recorded_moment *moment, uint32_t stack, uint64_t blocks,
		       uint64_t bytes)
{
	if (stack >= STACKS_MAX) {
		recording->n_bad_rows++;
		return;
	}
	if (torsh_load_can_walk(recording, process, stack))
		torsh_usage_list_add(&moment->usages, stack, blocks, bytes);
}

static void load_stacks(struct recording *recording, const struct recorded_process *process,
			struct recorded_moment *moment, const Torsh__Moments *row, size_t first,
			size_t n)
{
	for (size_t i = first; i < first + n; i++)
		load_usage(recording, process, moment, row->stack[i], row->stack_blocks[i],
			   row->stack_bytes[i]);
}

void torsh_load_moments(struct recording *recording, const Torsh__Moments *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	size_t at = 0;

	if (!process)
		return;
	if (!are_columns_equal(row)) {
		recording->n_bad_rows++;
		return;
	}
	for (size_t i = 0; i < row->n_number; at += row->n_stacks[i++]) {
		struct recorded_moment *moment = take_moment(process, row->number[i]);

		if (!moment || row->kind[i] >= N_RECORDED_MOMENT_KINDS) {
			recording->n_bad_rows++;
			continue;
		}
		if (!row->piece[i])
			torsh_usage_list_clear(&moment->usages);
		moment->at_ns = row->at_ns[i];
		moment->kind = row->kind[i];
		moment->name = row->name[i];
		moment->n_steps = i < row->n_n_steps ? row->n_steps[i] : 0;
		moment->resident_bytes = i < row->n_resident_bytes ? row->resident_bytes[i] : 0;
		moment->has_highest = i < row->n_highest_bytes && i < row->n_highest_ns;
		if (moment->has_highest) {
			moment->highest_bytes = row->highest_bytes[i];
			moment->highest_ns = row->highest_ns[i];
		}
		moment->bytes = row->bytes[i];
		moment->blocks = row->blocks[i];
		load_stacks(recording, process, moment, row, at, row->n_stacks[i]);
	}
}

/* Returns the peak with that number, and creates it if it is new; NULL: there are too many. */
static struct recorded_moment *take_window_peak(struct recorded_process *process, uint32_t number)
{
	for (size_t i = 0; i < process->n_window_peaks; i++) {
		if (process->window_peaks[i].number == number)
			return &process->window_peaks[i];
	}
	if (process->n_window_peaks == MOMENTS_MAX)
		return NULL;
	process->window_peaks =
		torsh_array_reserve(process->window_peaks, process->n_window_peaks,
				    &process->window_peaks_room, sizeof(*process->window_peaks));
	process->window_peaks[process->n_window_peaks] = (struct recorded_moment){.number = number};
	return &process->window_peaks[process->n_window_peaks++];
}

void torsh_load_window_peak(struct recording *recording, const Torsh__WindowPeak *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	struct recorded_moment *peak;

	if (!process)
		return;
	peak = row->n_stack_bytes == row->n_stack && row->n_stack_blocks == row->n_stack
		       ? take_window_peak(process, row->number)
		       : NULL;
	if (!peak) {
		recording->n_bad_rows++;
		return;
	}
	if (!row->piece)
		torsh_usage_list_clear(&peak->usages);
	peak->at_ns = row->at_ns;
	peak->bytes = row->bytes;
	peak->blocks = row->blocks;
	peak->joint_bytes = row->joint_bytes;
	for (size_t i = 0; i < row->n_stack; i++)
		load_usage(recording, process, peak, row->stack[i], row->stack_blocks[i],
			   row->stack_bytes[i]);
}
