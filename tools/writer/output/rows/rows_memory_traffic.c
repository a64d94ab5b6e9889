/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the machine's memory controllers moved: tools/writer/traffic. */
#include "tools/writer/output/rows/rows_parts.h"
#include "tools/writer/traffic/traffic_meter.h"

static void put_state(Torsh__MemoryTraffic *row, const struct traffic_state *state)
{
	if (*state->name)
		row->source = (char *)(uintptr_t)state->name;
	ROWS_SET(row, sources, state->n_sources);
	ROWS_SET(row, counters, state->n_counters);
	ROWS_SET(row, problem, state->problem);
	ROWS_SET(row, error, (uint32_t)state->error);
	if (state->has_paranoid)
		ROWS_SET(row, paranoid, state->paranoid);
	ROWS_SET(row, counted_share, state->counted_share);
}

void torsh_rows_memory_traffic(struct recording_file *file, const struct traffic_state *state,
			       const struct traffic_point *points, size_t n)
{
	Torsh__MemoryTraffic row = TORSH__MEMORY_TRAFFIC__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	struct traffic_point last = {0};
	struct rows_memory memory = {0};

	put_state(&row, state);
	ROWS_COLUMN(&memory, &row, at_step, n);
	ROWS_COLUMN(&memory, &row, read_step, n);
	ROWS_COLUMN(&memory, &row, written_step, n);
	for (size_t i = 0; i < n; i++) {
		row.at_step[i] = points[i].at_ns - last.at_ns;
		row.read_step[i] = points[i].sums[0] - last.sums[0];
		row.written_step[i] = points[i].sums[1] - last.sums[1];
		last = points[i];
	}
	chunk.n_memory_traffic = 1;
	chunk.memory_traffic = &rows;
	torsh_recording_append(file, &chunk, RECORDING_EVENTS);
	torsh_rows_free(&memory);
}
