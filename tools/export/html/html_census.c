/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Python's small objects near the peaks: the censuses of the processes that had most of them. */
#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/export/html/html_page.h"

#define PROCESSES 16u
#define ROWS 400u

static void put_census(struct html_page *page, const struct recorded_process *process)
{
	const struct recorded_census *census = &process->census;
	struct json_writer *json = &page->json;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "process", torsh_html_process(page, process));
	torsh_json_put_u64(json, "begin_ns", census->begin_ns);
	torsh_json_put_i64(json, "from_peak_ns",
			   (int64_t)(census->begin_ns - process->heap.peak_ns));
	torsh_json_put_u64(json, "heap_bytes", census->heap_begin_bytes);
	torsh_json_put_u64(json, "heap_peak_bytes", process->heap.peak_bytes);
	torsh_json_put_u64(json, "pool_bytes", census->pool_bytes);
	torsh_json_put_u64(json, "objects", census->objects);
	torsh_json_put_u64(json, "bytes", census->bytes);
	torsh_json_put_u64(json, "changed", census->pools_changed);
	/* [type, bytes of an object, objects] */
	torsh_json_begin_array(json, "rows");
	for (size_t i = 0; i < census->n_rows && i < torsh_html_limit(page, ROWS); i++) {
		torsh_json_begin_array(json, NULL);
		torsh_html_put_text(page, NULL, census->rows[i].type);
		torsh_json_put_u64(json, NULL, census->rows[i].block_bytes);
		torsh_json_put_u64(json, NULL, census->rows[i].objects);
		torsh_json_end_array(json);
	}
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

static int compare_processes(const void *a, const void *b)
{
	const struct recorded_process *const *x = a, *const *y = b;

	if ((*x)->census.bytes != (*y)->census.bytes)
		return (*x)->census.bytes > (*y)->census.bytes ? -1 : 1;
	return ((*x)->number > (*y)->number) - ((*x)->number < (*y)->number);
}

void torsh_html_census_put(struct html_page *page)
{
	const struct trace *trace = page->trace;
	const struct recorded_process **known =
		torsh_need_items(NULL, 0, trace->n_processes, sizeof(*known));
	size_t n = 0;

	for (size_t i = 0; i < trace->n_processes; i++) {
		if (trace->processes[i]->census.is_there)
			known[n++] = trace->processes[i];
	}
	if (n)
		qsort(known, n, sizeof(*known), compare_processes);
	torsh_json_begin_array(&page->json, "census");
	for (size_t i = 0; i < n && i < torsh_html_limit(page, PROCESSES); i++)
		put_census(page, known[i]);
	torsh_json_end_array(&page->json);
	free(known);
}
