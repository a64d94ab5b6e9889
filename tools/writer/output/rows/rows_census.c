/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The census of CPython's small objects. */
#include "tools/writer/census/census_watch.h"
#include "tools/writer/output/rows/rows_parts.h"

static void put_census(Torsh__Census *row, struct rows_memory *memory, const struct census *census)
{
	uint32_t n = census->n_rows;

	ROWS_SET(row, begin_ns, census->begin_ns);
	ROWS_SET(row, end_ns, census->end_ns);
	ROWS_SET(row, heap_begin_bytes, census->heap_begin_bytes);
	ROWS_SET(row, heap_end_bytes, census->heap_end_bytes);
	ROWS_SET(row, mapped_bytes, census->level_bytes - census->heap_begin_bytes);
	ROWS_SET(row, pool_bytes, census->pool_bytes);
	ROWS_SET(row, blocks, census->blocks);
	ROWS_SET(row, objects, census->objects);
	ROWS_SET(row, bytes, census->bytes);
	ROWS_SET(row, pools_changed, census->pools_changed);
	ROWS_SET(row, cpu_ns, census->cpu_ns);
	row->n_names = census->n_names;
	row->names = census->names;
	ROWS_COLUMN(memory, row, type, n);
	ROWS_COLUMN(memory, row, block_bytes, n);
	ROWS_COLUMN(memory, row, type_objects, n);
	for (uint32_t i = 0; i < n; i++) {
		row->type[i] = census->rows[i].type;
		row->block_bytes[i] = census->rows[i].block_bytes;
		row->type_objects[i] = census->rows[i].objects;
	}
}

void torsh_rows_append_census(struct recording_file *file, const struct target *target,
			      enum recording_priority priority, bool is_all)
{
	struct census_watch *watch = target->census;
	Torsh__Census row = TORSH__CENSUS__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	struct rows_memory memory = {0};
	struct extent former;

	if (!watch || (!is_all && !watch->is_changed) || (!watch->is_there && !watch->problem))
		return;
	ROWS_SET(&row, process, target->number);
	if (watch->is_there)
		put_census(&row, &memory, &watch->last);
	else
		row.problem = (char *)(uintptr_t)watch->problem;
	chunk.n_census = 1;
	chunk.census = &rows;
	former = watch->extent;
	if (is_all) {
		torsh_recording_append(file, &chunk, priority);
	} else if (torsh_recording_put(file, &chunk, priority, &watch->extent)) {
		watch->extent = former;
	} else {
		torsh_recording_free_extent(file, former);
		watch->is_changed = false;
	}
	torsh_rows_free(&memory);
}
