/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/census/census.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/memory.h"
#include "tools/writer/reachability/python/python_pools.h"
#include "tools/writer/reachability/python/python_types.h"

#define N_SIZES 32u /* multiples of 16 */

struct counting {
	struct census *census;
	struct python_types types;
	/* by type + 1, then by size */
	uint64_t (*objects)[N_SIZES];
	uint32_t n_types;
};

/* Returns the counts of a type, or of what has none. */
static uint64_t *counts_of(struct counting *counting, uint32_t type)
{
	uint32_t row = type == NO_PYTHON_TYPE ? 0 : type + 1;

	while (row >= counting->n_types) {
		uint32_t n = counting->n_types ? counting->n_types * 2 : 256;

		uint64_t(*objects)[N_SIZES] = torsh_memory_new(n, sizeof(*objects));

		if (counting->n_types)
			memcpy(objects, counting->objects, counting->n_types * sizeof(*objects));
		free(counting->objects);
		counting->objects = objects;
		counting->n_types = n;
	}
	return counting->objects[row];
}

static void take_pool(void *context, const struct pymalloc_pool *pool, const uint64_t *words,
		      size_t n)
{
	struct counting *counting = context;
	size_t n_of_block = pool->block_bytes / sizeof(*words);

	counting->census->pool_bytes += pool->bytes;
	for (uint32_t i = 0; i < pool->n_blocks; i++) {
		size_t first = (pool->first + (size_t)i * pool->block_bytes) / sizeof(*words);
		size_t left = first < n ? n - first : 0;

		if (!torsh_pymalloc_is_used(pool, i))
			continue;
		counts_of(counting, torsh_python_types_of(&counting->types, words + first,
							  left < n_of_block ? left : n_of_block,
							  false))[pool->block_bytes / 16 - 1]++;
	}
}

/* ---- rows ------------------------------------------------------------------------------------ */

static uint64_t bytes_of(const struct census_row *row)
{
	return row->objects * row->block_bytes;
}

static int compare_rows(const void *a, const void *b)
{
	const struct census_row *x = a, *y = b;

	if (bytes_of(x) != bytes_of(y))
		return bytes_of(x) > bytes_of(y) ? -1 : 1;
	return (x->type > y->type) - (x->type < y->type);
}

static void add_row(struct census *census, uint32_t type, uint32_t size, uint64_t objects)
{
	struct census_row row = {.type = type, .block_bytes = (size + 1) * 16, .objects = objects};

	if (!objects)
		return;
	census->rows[census->n_rows++] = row;
	census->blocks += objects;
	census->objects += type ? objects : 0;
	census->bytes += bytes_of(&row);
}

static void make_rows(struct counting *counting)
{
	struct census *census = counting->census;
	uint32_t n_types = counting->types.n + 1;

	n_types = n_types < counting->n_types ? n_types : counting->n_types;
	census->rows = torsh_memory_new((size_t)n_types * N_SIZES + 1, sizeof(*census->rows));
	for (uint32_t i = 0; i < n_types; i++) {
		for (uint32_t size = 0; size < N_SIZES; size++)
			add_row(census, i, size, counting->objects[i][size]);
	}
	qsort(census->rows, census->n_rows, sizeof(*census->rows), compare_rows);
	if (census->n_rows > CENSUS_ROWS_MAX)
		census->n_rows = CENSUS_ROWS_MAX;
}

/* Keep the names of types that have rows. */
static void name_rows(struct counting *counting)
{
	struct census *census = counting->census;
	uint32_t *numbers = torsh_memory_new((size_t)counting->types.n + 1, sizeof(*numbers));

	census->names = torsh_memory_new((size_t)census->n_rows + 1, sizeof(*census->names));
	for (uint32_t i = 0; i < census->n_rows; i++) {
		uint32_t type = census->rows[i].type;

		if (!type)
			continue;
		if (!numbers[type - 1]) {
			census->names[census->n_names++] =
				torsh_memory_text(counting->types.items[type - 1]->name);
			numbers[type - 1] = census->n_names;
		}
		census->rows[i].type = numbers[type - 1];
	}
	free(numbers);
}

int torsh_census_take(struct census *census, pid_t pid, const struct heap_ranges *maps,
		      const _Atomic bool *is_cancelled)
{
	struct counting counting = {.census = census};
	struct python_pools pools = {.take = take_pool, .context = &counting};
	struct memory_reader reader;
	int result = torsh_memory_reader_open(&reader, pid);

	if (result)
		return result;
	torsh_python_types_create(&counting.types, &reader);
	for (uint32_t i = 0; !result && i < maps->n; i++) {
		result = atomic_load_explicit(is_cancelled, memory_order_relaxed)
				 ? -ECANCELED
				 : torsh_python_pools_visit(&pools, &maps->items[i], &reader);
	}
	census->pools_changed = pools.n_refused;
	if (!result && counting.n_types) {
		make_rows(&counting);
		name_rows(&counting);
	}
	free(counting.objects);
	torsh_python_types_destroy(&counting.types);
	torsh_memory_reader_close(&reader);
	return result;
}

void torsh_census_free(struct census *census)
{
	for (uint32_t i = 0; i < census->n_names; i++)
		free(census->names[i]);
	free(census->names);
	free(census->rows);
	*census = (struct census){0};
}
