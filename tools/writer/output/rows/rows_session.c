/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The session-wide peak: the sum, and each process's part of it. */
#include <stdbool.h>
#include <errno.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/writer/fold/heap_state.h"
#include "tools/writer/fold/session_heap.h"
#include "tools/writer/fold/step_marks.h"
#include "tools/writer/output/rows/rows_parts.h"

static bool has_usage(const struct session_heap *session_heap, const struct site_usage *usage)
{
	return torsh_session_heap_peak_bytes(session_heap, usage) ||
	       torsh_session_heap_peak_n(session_heap, usage);
}

/* At most ROWS_BATCH sites from *site on. */
static void put_usages(Torsh__Joint *row, struct rows_memory *memory,
		       const struct session_member *member, uint32_t *site)
{
	const struct session_heap *session_heap = member->session_heap;
	uint32_t n_sites = (uint32_t)member->usages.n_codes, n_left = n_sites - *site;
	uint32_t n = n_left < ROWS_BATCH ? n_left : ROWS_BATCH, i = 0;

	ROWS_COLUMN(memory, row, stack, n);
	ROWS_COLUMN(memory, row, blocks, n);
	ROWS_COLUMN(memory, row, bytes, n);
	ROWS_COLUMN(memory, row, step_of_first, n);
	ROWS_COLUMN(memory, row, step_of_last, n);
	for (; *site < n_sites && i < n; (*site)++) {
		struct site_usage usage = torsh_session_heap_usage(member, *site);

		if (!has_usage(session_heap, &usage))
			continue;
		row->stack[i] = torsh_session_heap_stack(member, *site);
		row->blocks[i] = torsh_session_heap_peak_n(session_heap, &usage);
		row->bytes[i] = torsh_session_heap_peak_bytes(session_heap, &usage);
		row->step_of_first[i] = torsh_step_marks_final(
			torsh_site_usage_peak_first_step(&usage, &session_heap->tracker),
			member->is_by_optimizer);
		row->step_of_last[i++] = torsh_step_marks_final(
			torsh_site_usage_peak_last_step(&usage, &session_heap->tracker),
			member->is_by_optimizer);
	}
	row->n_stack = row->n_blocks = row->n_bytes = row->n_step_of_first = row->n_step_of_last =
		i;
}

static void put_sum(Torsh__Joint *row, const struct session_heap *session_heap,
		    const struct clock_conversion *clock)
{
	ROWS_SET(row, peak_number, session_heap->tracker.peak_number);
	ROWS_SET(row, peak_bytes, session_heap->tracker.peak_bytes);
	ROWS_SET(row, peak_blocks, session_heap->tracker.peak_n);
	ROWS_SET(row, peak_ns, torsh_clock_to_ns(clock, session_heap->tracker.peak_stamp));
	ROWS_SET(row, late_changes, session_heap->late_changes);
}

static int put(struct recording_file *file, Torsh__Joint *row, enum recording_priority priority,
	       struct rows_extents *extents)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	struct extent extent;
	int result;

	chunk.n_joint = 1;
	chunk.joint = &row;
	result = torsh_recording_put(file, &chunk, priority, &extent);
	if (result)
		return result;
	extents->items =
		torsh_array_reserve(extents->items, extents->n, &extents->capacity, sizeof(extent));
	extents->items[extents->n++] = extent;
	return 0;
}

static int put_members(struct recording_file *file, struct session_heap *session_heap,
		       const struct clock_conversion *clock, enum recording_priority priority,
		       struct rows_extents *extents)
{
	int result = 0;

	for (const struct session_member *member = session_heap->members; member;
	     member = member->next) {
		uint32_t site = 0;

		while (site < member->usages.n_codes) {
			Torsh__Joint row = TORSH__JOINT__INIT;
			struct rows_memory memory = {0};

			put_sum(&row, session_heap, clock);
			ROWS_SET(&row, process, member->process);
			put_usages(&row, &memory, member, &site);
			if (row.n_stack && put(file, &row, priority, extents))
				result = -EIO;
			torsh_rows_free(&memory);
		}
	}
	return result;
}

void torsh_rows_session_peak(struct recording_file *file, struct session_heap *session_heap,
			     const struct clock_conversion *clock, enum recording_priority priority,
			     struct rows_extents *extents)
{
	Torsh__Joint sum = TORSH__JOINT__INIT;
	uint32_t n_former = extents->n;

	torsh_peak_tracker_settle(&session_heap->tracker);
	put_sum(&sum, session_heap, clock);
	/* If not all rows could be written, the previous ones stay. */
	if (put(file, &sum, priority, extents) ||
	    put_members(file, session_heap, clock, priority, extents))
		return;
	for (uint32_t i = 0; i < n_former; i++)
		torsh_recording_free_extent(file, extents->items[i]);
	extents->n -= n_former;
	memmove(extents->items, extents->items + n_former, extents->n * sizeof(*extents->items));
}
