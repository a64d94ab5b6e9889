/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/peak/peak_census.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/report/text.h"
#include "tools/terminal/table.h"

#define TYPES_SHOWN 10u
#define LEAST_SHARE \
	10u /* of all that the process had: with less Python's objects are no question */

/* All rows of one type. */
struct census_type {
	const char *name; /* NULL: blocks that begin with no object */
	uint64_t objects, bytes;
};

static const struct table_column columns[] = {
	{"objects", TABLE_NUMBER, .drop = 0},
	{"bytes", TABLE_NUMBER, .drop = 0},
	{"", TABLE_NAME, .cut = CUT_END},
};

static int compare_types(const void *a, const void *b)
{
	const struct census_type *x = a, *y = b;

	return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* Returns the types, those with most bytes first; the caller frees them. */
static struct census_type *types_of(const struct recorded_census *census, size_t *n)
{
	struct census_type *types = torsh_need_items(NULL, 0, census->n_rows + 1, sizeof(*types));

	*n = 0;
	for (size_t i = 0; i < census->n_rows; i++) {
		const struct recorded_census_row *row = &census->rows[i];
		size_t k = 0;

		while (k < *n && types[k].name != row->type)
			k++;
		if (k == *n)
			types[(*n)++] = (struct census_type){.name = row->type};
		types[k].objects += row->objects;
		types[k].bytes += row->objects * row->block_bytes;
	}
	qsort(types, *n, sizeof(*types), compare_types);
	return types;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_types(const struct recorded_census *census)
{
	struct table *table = torsh_table_create(columns, sizeof(columns) / sizeof(*columns));
	size_t n;
	struct census_type *types = types_of(census, &n);

	for (size_t i = 0; i < n && i < TYPES_SHOWN; i++) {
		torsh_table_cell(table, "%" PRIu64, types[i].objects);
		torsh_table_bytes(table, types[i].bytes);
		torsh_table_cell(table, "%s", types[i].name ? types[i].name : "parts of objects");
	}
	torsh_table_print(table, stdout);
	if (n > TYPES_SHOWN)
		torsh_text_smaller(stdout, n - TYPES_SHOWN);
	free(types);
}

/* How far it is from the peak. */
static void print_distance(const struct recorded_process *process)
{
	const struct recorded_census *census = &process->census;
	const struct recorded_heap *heap = &process->heap;
	bool is_before = census->begin_ns <= heap->peak_ns;
	char at[SIZE_TEXT_BYTES], took[SIZE_TEXT_BYTES], far[SIZE_TEXT_BYTES],
		least[SIZE_TEXT_BYTES], most[SIZE_TEXT_BYTES];
	uint64_t low = census->heap_begin_bytes, high = census->heap_end_bytes;

	printf("Counted %s after the start in %s while it ran, %s %s its heap's peak; the heap had %s",
	       torsh_size_duration(census->begin_ns > process->start_ns
					   ? census->begin_ns - process->start_ns
					   : 0,
				   at),
	       torsh_size_duration(census->end_ns - census->begin_ns, took),
	       torsh_size_duration(is_before ? heap->peak_ns - census->begin_ns
					     : census->begin_ns - heap->peak_ns,
				   far),
	       is_before ? "before" : "after", torsh_size_human(low < high ? low : high, least));
	if (low != high)
		printf(" to %s", torsh_size_human(low < high ? high : low, most));
	printf(" then, of %s.", torsh_size_human(heap->peak_bytes, most));
	if (census->pools_changed)
		printf(" Left out: %" PRIu64 " pools that changed meanwhile.",
		       census->pools_changed);
	puts("");
}

void torsh_peak_census_text(const struct recorded_process *process)
{
	const struct recorded_census *census = &process->census;
	char bytes[SIZE_TEXT_BYTES], pools[SIZE_TEXT_BYTES], objects[SIZE_TEXT_BYTES];

	if (census->problem)
		printf("Python's objects near the peak were not counted: %s.\n", census->problem);
	if (!census->is_there ||
	    census->bytes < (census->bytes + census->heap_begin_bytes) / LEAST_SHARE)
		return;
	torsh_text_heading(
		stdout, "Python's objects of up to 512 bytes near the peak: %s, %s in %s of pools",
		torsh_size_counted(census->objects, "object", objects),
		torsh_size_human(census->bytes, bytes),
		torsh_size_human(census->pool_bytes, pools));
	print_types(census);
	print_distance(process);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void emit_sizes(struct json_writer *json, const struct recorded_census *census,
		       const char *type)
{
	torsh_json_begin_array(json, "sizes");
	for (size_t i = 0; i < census->n_rows; i++) {
		if (census->rows[i].type != type)
			continue;
		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "block_bytes", census->rows[i].block_bytes);
		torsh_json_put_u64(json, "objects", census->rows[i].objects);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void emit_types(struct json_writer *json, const struct recorded_census *census)
{
	size_t n;
	struct census_type *types = types_of(census, &n);

	torsh_json_begin_lines(json, "types");
	for (size_t i = 0; i < n; i++) {
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "name", types[i].name);
		torsh_json_put_u64(json, "objects", types[i].objects);
		torsh_json_put_u64(json, "bytes", types[i].bytes);
		emit_sizes(json, census, types[i].name);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	free(types);
}

void torsh_peak_census_json(struct json_writer *json, const struct recorded_process *process)
{
	static const struct recorded_census none;
	const struct recorded_census *census = process ? &process->census : &none;

	torsh_json_put_text(json, "python_census_reason", census->problem);
	if (!census->is_there) {
		torsh_json_put_null(json, "python_census");
		return;
	}
	torsh_json_begin_object(json, "python_census");
	torsh_json_put_u64(json, "begin_ns", census->begin_ns);
	torsh_json_put_u64(json, "end_ns", census->end_ns);
	torsh_json_put_i64(json, "from_peak_ns",
			   (int64_t)(census->begin_ns - process->heap.peak_ns));
	torsh_json_put_u64(json, "heap_begin_bytes", census->heap_begin_bytes);
	torsh_json_put_u64(json, "heap_end_bytes", census->heap_end_bytes);
	torsh_json_put_u64(json, "heap_peak_bytes", process->heap.peak_bytes);
	torsh_json_put_u64(json, "mapped_bytes", census->mapped_bytes);
	torsh_json_put_u64(json, "pool_bytes", census->pool_bytes);
	torsh_json_put_u64(json, "blocks", census->blocks);
	torsh_json_put_u64(json, "objects", census->objects);
	torsh_json_put_u64(json, "bytes", census->bytes);
	torsh_json_put_u64(json, "pools_changed", census->pools_changed);
	torsh_json_put_u64(json, "cpu_ns", census->cpu_ns);
	emit_types(json, census);
	torsh_json_end_object(json);
}
