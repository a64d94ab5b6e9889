/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Loads the census of CPython's small objects. */
#include "tools/recording/load_parts.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"

void torsh_load_forget_census(struct recorded_census *census)
{
	for (size_t i = 0; i < census->n_names; i++)
		free(census->names[i]);
	free(census->names);
	free(census->rows);
	free(census->problem);
	*census = (struct recorded_census){0};
}

static void load_rows(struct recorded_census *census, const Torsh__Census *row)
{
	census->names = torsh_need_items(NULL, 0, row->n_names, sizeof(*census->names));
	for (size_t i = 0; i < row->n_names; i++)
		census->names[census->n_names++] = torsh_need(strdup(row->names[i]));
	census->rows = torsh_need_items(NULL, 0, row->n_type, sizeof(*census->rows));
	for (size_t i = 0; i < row->n_type; i++) {
		uint32_t type = row->type[i];

		census->rows[census->n_rows++] = (struct recorded_census_row){
			.type = type && type <= census->n_names ? census->names[type - 1] : NULL,
			.block_bytes = row->block_bytes[i],
			.objects = row->type_objects[i],
		};
	}
}

void torsh_load_census(struct recording *recording, const Torsh__Census *row)
{
	struct recorded_process *process = torsh_load_process_of(recording, row->process);
	struct recorded_census *census;

	if (!process)
		return;
	if (row->n_block_bytes != row->n_type || row->n_type_objects != row->n_type) {
		recording->n_bad_rows++;
		return;
	}
	census = &process->census;
	torsh_load_forget_census(census);
	*census = (struct recorded_census){
		.is_there = !row->problem,
		.begin_ns = row->begin_ns,
		.end_ns = row->end_ns,
		.heap_begin_bytes = row->heap_begin_bytes,
		.heap_end_bytes = row->heap_end_bytes,
		.mapped_bytes = row->mapped_bytes,
		.pool_bytes = row->pool_bytes,
		.blocks = row->blocks,
		.objects = row->objects,
		.bytes = row->bytes,
		.pools_changed = row->pools_changed,
		.cpu_ns = row->cpu_ns,
	};
	torsh_load_text(&census->problem, row->problem);
	load_rows(census, row);
}
