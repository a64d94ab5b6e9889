/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls of BLAS and LAPACK: the whole table, whenever it has changed. */
#include "tools/writer/output/rows/rows_parts.h"

/* The texts that rows refer to, each once. */
struct texts {
	const struct target *target;
	struct hash_map by_number;
	char **items;
	size_t n;
};

/* Returns the index of a label's text and 1; 0: it has none. */
static uint32_t index_of(struct texts *texts, uint32_t label)
{
	const struct hash_entry *entry;

	if (!label)
		return 0;
	entry = torsh_hash_map_put(&texts->by_number, &label, sizeof(label), texts->n);
	if (entry->value == texts->n)
		texts->items[texts->n++] =
			texts->target->state.tables->code.functions[label - 1].name;
	return (uint32_t)entry->value + 1;
}

static void put_row(Torsh__LibraryCalls *row, uint32_t i, const struct library_call_sum *sum,
		    struct texts *texts)
{
	row->name[i] = index_of(texts, sum->key.name);
	row->routine[i] = index_of(texts, sum->key.routine);
	row->library[i] = index_of(texts, sum->key.library);
	row->type[i] = sum->key.type;
	row->m[i] = sum->key.m;
	row->n[i] = sum->key.n;
	row->k[i] = sum->key.k;
	row->batch[i] = sum->key.batch;
	row->letters[i] = sum->key.letters;
	row->shape[i] = index_of(texts, sum->key.shape);
	row->details[i] = index_of(texts, sum->key.details);
	row->is_rest[i] = (protobuf_c_boolean)sum->key.is_rest;
	row->calls[i] = sum->calls;
	row->total_ns[i] = sum->total_ns;
	row->min_ns[i] = sum->min_ns;
	row->max_ns[i] = sum->max_ns;
}

static void put_calls(Torsh__LibraryCalls *row, struct rows_memory *memory,
		      const struct target *target)
{
	const struct library_calls *calls = &target->state.library_calls;
	uint32_t n = calls->n_rows;
	struct texts texts = {.target = target};

	texts.items = torsh_rows_memory(memory, 5 * (size_t)n, sizeof(*texts.items));
	ROWS_SET(row, process, target->number);
	ROWS_COLUMN(memory, row, name, n);
	ROWS_COLUMN(memory, row, routine, n);
	ROWS_COLUMN(memory, row, library, n);
	ROWS_COLUMN(memory, row, type, n);
	ROWS_COLUMN(memory, row, m, n);
	ROWS_COLUMN(memory, row, n, n);
	ROWS_COLUMN(memory, row, k, n);
	ROWS_COLUMN(memory, row, batch, n);
	ROWS_COLUMN(memory, row, letters, n);
	ROWS_COLUMN(memory, row, shape, n);
	ROWS_COLUMN(memory, row, details, n);
	ROWS_COLUMN(memory, row, is_rest, n);
	ROWS_COLUMN(memory, row, calls, n);
	ROWS_COLUMN(memory, row, total_ns, n);
	ROWS_COLUMN(memory, row, min_ns, n);
	ROWS_COLUMN(memory, row, max_ns, n);
	for (uint32_t i = 0; i < n; i++)
		put_row(row, i, &calls->rows[i], &texts);
	row->n_names = texts.n;
	row->names = texts.items;
	torsh_hash_map_free(&texts.by_number);
}

void torsh_rows_append_library_calls(struct recording_file *file, struct target *target,
				     enum recording_priority priority, bool is_all)
{
	struct library_calls *calls = &target->state.library_calls;
	Torsh__LibraryCalls row = TORSH__LIBRARY_CALLS__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	struct rows_memory memory = {0};
	struct extent former = target->library_calls;

	if (!calls->n_rows || (!is_all && !calls->is_changed))
		return;
	put_calls(&row, &memory, target);
	chunk.n_library_calls = 1;
	chunk.library_calls = &rows;
	if (is_all) {
		torsh_recording_append(file, &chunk, priority);
	} else if (torsh_recording_put(file, &chunk, priority, &target->library_calls)) {
		target->library_calls = former;
	} else {
		torsh_recording_free_extent(file, former);
		calls->is_changed = false;
	}
	torsh_rows_free(&memory);
}
