/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh regions: a program's own annotations, from torsh.h, NVTX and ITT. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/command/reading.h"
#include "tools/command/regions_pools.h"
#include "tools/ops/regions.h"
#include "tools/report/parts.h"
#include "tools/report/selection.h"
#include "tools/report/text.h"
#include "tools/terminal/table.h"

#define TEXT_LIMIT 40
#define NAME_BYTES_MAX 100

static const char doc[] =
	"Show the regions that a recorded program named, by torsh.h, torsh.py, NVTX or ITT: how often it "
	"was in each and for how long, what it marked, the values that it gave, and its own pools of memory, "
	"which it describes by NVTX.\v"
	"A region counts with all that happened in it. One that was still open at the end counts as ended "
	"there.";

enum { KEY_SORT = 0x2000, KEY_SOURCE, KEY_BY_THREAD };
enum order { BY_TOTAL, BY_CALLS, BY_AVERAGE, BY_MAX, BY_NAME };

struct region_options {
	struct read_options read;
	struct regions regions;
	enum order order;
};

static const struct argp_option options_regions[] = {
	{"sort", KEY_SORT, "KEY", 0, "total (default), calls, avg, max or name", 0},
	{"source", KEY_SOURCE, "SOURCE", 0, "only regions from torsh, nvtx, itt or module", 0},
	{"by-thread", KEY_BY_THREAD, NULL, 0, "an entry for each thread", 0},
	{0},
};

static const char *const order_names[] = {[BY_TOTAL] = "total",
					  [BY_CALLS] = "calls",
					  [BY_AVERAGE] = "avg",
					  [BY_MAX] = "max",
					  [BY_NAME] = "name"};

static uint32_t parse_source(struct argp_state *state, const char *text)
{
	const char *names[RANGE_BY_MODULE - RANGE_BY_TORSH + 1];
	size_t n = sizeof(names) / sizeof(*names);

	for (uint32_t i = 0; i < n; i++)
		names[i] = torsh_regions_source(RANGE_BY_TORSH + i);
	return RANGE_BY_TORSH + (uint32_t)torsh_argument_choice(state, "source", names, n, text);
}

static error_t parse_regions(int key, char *argument, struct argp_state *state)
{
	struct region_options *options = state->input;

	switch (key) {
	case KEY_SORT:
		options->order = (enum order)torsh_argument_choice(
			state, "sort", order_names, sizeof(order_names) / sizeof(*order_names),
			argument);
		return 0;
	case KEY_SOURCE:
		options->regions.source = parse_source(state, argument);
		options->regions.has_source = true;
		return 0;
	case KEY_BY_THREAD:
		options->regions.by_thread = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_u64(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static uint64_t average_ns(const struct region *region)
{
	return region->n ? region->total_ns / region->n : 0;
}

/* By kind, then by the key; equal keys by name, so that the order is stable. */
static int compare_regions(const void *left, const void *right, void *context)
{
	const struct region *a = left, *b = right;
	int by = 0;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	switch (*(const enum order *)context) {
	case BY_TOTAL:
		by = compare_u64(b->total_ns, a->total_ns);
		break;
	case BY_CALLS:
		by = compare_u64(b->n, a->n);
		break;
	case BY_AVERAGE:
		by = compare_u64(average_ns(b), average_ns(a));
		break;
	case BY_MAX:
		by = compare_u64(b->max_ns, a->max_ns);
		break;
	case BY_NAME:
		break;
	}
	by = by ? by : compare_texts(a->name, b->name);
	by = by ? by : compare_texts(a->domain, b->domain);
	by = by ? by : compare_texts(a->category, b->category);
	by = by ? by : compare_u64(a->source, b->source);
	by = by ? by
		: compare_u64(a->process ? a->process->number : 0,
			      b->process ? b->process->number : 0);
	return by ? by : compare_u64(a->thread, b->thread);
}

struct view {
	struct prepass prepass;
	struct pools pools;
	const struct region_options *options;
	const struct reading *reading;
	size_t first[N_REGION_KINDS + 1]; /* index of each kind's first item, and the end */
};

static size_t n_shown(const struct view *view, enum region_kind kind)
{
	return torsh_options_limit(&view->options->read, view->first[kind + 1] - view->first[kind],
				   TEXT_LIMIT);
}

/* Emit the members of all kinds; the caller adds its own and ends the object. */
static void begin_region(struct json_writer *json, const struct region_options *options,
			 const struct region *region)
{
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "source", torsh_regions_source(region->source));
	torsh_json_put_text(json, "domain", region->domain);
	torsh_json_put_text(json, "name", region->name);
	torsh_json_put_u64(json, "threads", region->n_threads);
	if (options->regions.by_thread) {
		const struct recorded_process *process = region->process;

		torsh_json_put_u64(json, "pid", process->pid);
		if (region->thread < process->n_threads)
			torsh_json_put_u64(json, "tid", process->threads[region->thread].tid);
		else
			torsh_json_put_null(json, "tid");
		torsh_json_put_text(
			json, "thread",
			torsh_regions_thread_name(&options->regions, process, region->thread));
	}
}

static void emit_range(struct json_writer *json, const struct region_options *options,
		       const struct region *region)
{
	begin_region(json, options, region);
	torsh_json_put_text(json, "category", region->category);
	torsh_json_put_u64(json, "calls", region->n);
	torsh_json_put_u64(json, "total_ns", region->total_ns);
	torsh_json_put_u64(json, "avg_ns", average_ns(region));
	torsh_json_put_u64(json, "min_ns", region->min_ns);
	torsh_json_put_u64(json, "max_ns", region->max_ns);
	torsh_json_put_u64(json, "left_open", region->n_left_open);
	torsh_json_end_object(json);
}

static void emit_mark(struct json_writer *json, const struct region_options *options,
		      const struct region *region)
{
	begin_region(json, options, region);
	torsh_json_put_text(json, "category", region->category);
	torsh_json_put_u64(json, "marks", region->n);
	torsh_json_end_object(json);
}

static const char *kind_name(enum region_kind kind)
{
	return kind == REGION_COUNTER ? "counter" : kind == REGION_SAMPLE ? "sample" : "scalar";
}

static void emit_value(struct json_writer *json, const struct region_options *options,
		       const struct region *region)
{
	begin_region(json, options, region);
	torsh_json_put_text(json, "kind", kind_name(region->kind));
	torsh_json_put_u64(json, "values", region->n);
	torsh_json_put_double(json, "first", region->first);
	torsh_json_put_double(json, "last", region->last);
	torsh_json_put_double(json, "min", region->min);
	torsh_json_put_double(json, "max", region->max);
	torsh_json_put_double(json, "mean", region->sum / (double)region->n);
	torsh_json_end_object(json);
}

static void emit_items(struct json_writer *json, const struct view *view, enum region_kind kind,
		       void emit(struct json_writer *json, const struct region_options *options,
				 const struct region *region))
{
	const struct region *items = view->options->regions.items + view->first[kind];

	for (size_t i = 0; i < n_shown(view, kind); i++)
		emit(json, view->options, &items[i]);
}

static void print_json(const struct view *view)
{
	const struct regions *regions = &view->options->regions;
	const struct reading *reading = view->reading;
	size_t n_omitted = regions->n;
	struct json_writer json;

	for (enum region_kind kind = 0; kind < N_REGION_KINDS; kind++)
		n_omitted -= n_shown(view, kind);
	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_begin_lines(&json, "regions");
	emit_items(&json, view, REGION_RANGE, emit_range);
	torsh_json_end_array(&json);
	torsh_json_begin_lines(&json, "marks");
	emit_items(&json, view, REGION_MARK, emit_mark);
	torsh_json_end_array(&json);
	torsh_json_begin_lines(&json, "values");
	for (enum region_kind kind = REGION_SCALAR; kind <= REGION_SAMPLE; kind++)
		emit_items(&json, view, kind, emit_value);
	torsh_json_end_array(&json);
	torsh_regions_emit_pools(&json, &view->pools,
				 torsh_options_limit(&view->options->read, SIZE_MAX, TEXT_LIMIT));
	torsh_json_put_u64(&json, "steps", regions->n_steps);
	torsh_json_put_u64(&json, "unpaired_ends", regions->n_unpaired_ends);
	torsh_json_put_u64(&json, "omitted", n_omitted);
	torsh_parts_emit_events(&json, reading->processes, reading->n_processes);
	torsh_json_begin_array(&json, "processes");
	for (size_t i = 0; i < reading->n_processes; i++) {
		torsh_parts_begin_process(&json, reading->processes[i]);
		torsh_json_end_object(&json);
	}
	torsh_json_end_array(&json);
	torsh_parts_emit_recording(&json, reading->recording);
	torsh_selection_members(&json, reading->processes, reading->n_processes, &view->prepass);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
}

static const struct table_column range_columns[] = {
	{"calls", TABLE_NUMBER, .drop = 0},   {"total", TABLE_NUMBER, .drop = 0},
	{"average", TABLE_NUMBER, .drop = 0}, {"shortest", TABLE_NUMBER, .drop = 2},
	{"longest", TABLE_NUMBER, .drop = 1}, {"region", TABLE_NAME, .cut = CUT_MIDDLE},
	{"from", TABLE_TEXT, .drop = 3},      {"thread", TABLE_TEXT, .drop = 0},
};

static const struct table_column mark_columns[] = {
	{"marks", TABLE_NUMBER, .drop = 0},
	{"mark", TABLE_NAME, .cut = CUT_MIDDLE},
	{"from", TABLE_TEXT, .drop = 1},
	{"thread", TABLE_TEXT, .drop = 0},
};

static const struct table_column value_columns[] = {
	{"values", TABLE_NUMBER, .drop = 0},  {"last", TABLE_NUMBER, .drop = 0},
	{"mean", TABLE_NUMBER, .drop = 0},    {"minimum", TABLE_NUMBER, .drop = 1},
	{"maximum", TABLE_NUMBER, .drop = 1}, {"value", TABLE_NAME, .cut = CUT_MIDDLE},
	{"from", TABLE_TEXT, .drop = 2},      {"thread", TABLE_TEXT, .drop = 0},
};

#define N_ITEMS(array) (sizeof(array) / sizeof(*(array)))

/* Returns how many bytes of a name are printed; a character is not cut. */
static int name_bytes(const char *name)
{
	size_t n = strlen(name);

	if (n <= NAME_BYTES_MAX)
		return (int)n;
	for (n = NAME_BYTES_MAX; n && (name[n] & 0xc0) == 0x80; n--)
		;
	return (int)n;
}

/* Put "domain/name", the API, and its owner if that is selected. */
static void put_name(struct table *table, const struct view *view, const struct region *region)
{
	const char *domain = region->domain ? region->domain : "",
		   *name = region->name ? region->name : "(no name)", *thread;

	torsh_table_cell(table, "%s%s%.*s%s", domain, *domain ? "/" : "", name_bytes(name), name,
			 strlen(name) > NAME_BYTES_MAX ? "..." : "");
	torsh_table_cell(table, "%s", torsh_regions_source(region->source));
	if (!region->process) {
		torsh_table_cell(table, "%s", "");
		return;
	}
	thread =
		torsh_regions_thread_name(&view->options->regions, region->process, region->thread);
	torsh_table_cell(table, "%s (pid %u)", thread ? thread : "?", region->process->pid);
}

static void put_range(struct table *table, const struct view *view, const struct region *region)
{
	torsh_table_count(table, region->n);
	torsh_table_time(table, region->total_ns);
	torsh_table_time(table, average_ns(region));
	torsh_table_time(table, region->min_ns);
	torsh_table_time(table, region->max_ns);
	put_name(table, view, region);
}

static void put_value(struct table *table, const struct view *view, const struct region *region)
{
	torsh_table_count(table, region->n);
	torsh_table_cell(table, "%.4g", region->last);
	torsh_table_cell(table, "%.4g", region->sum / (double)region->n);
	torsh_table_cell(table, "%.4g", region->min);
	torsh_table_cell(table, "%.4g", region->max);
	put_name(table, view, region);
}

static void put_mark(struct table *table, const struct view *view, const struct region *region)
{
	torsh_table_count(table, region->n);
	put_name(table, view, region);
}

/* Print regions of kinds with the same columns; the last column is the owner. */
static void print_table(const struct view *view, enum region_kind first, enum region_kind last,
			const struct table_column *columns, size_t n_columns,
			void put(struct table *table, const struct view *view,
				 const struct region *region))
{
	const struct region *items = view->options->regions.items;
	struct table *table;
	size_t n_left = 0;
	bool has_owners = false;

	if (view->first[first] == view->first[last + 1])
		return;
	table = torsh_table_create(columns, n_columns);
	for (enum region_kind kind = first; kind <= last; kind++) {
		for (size_t i = 0; i < n_shown(view, kind); i++) {
			const struct region *region = &items[view->first[kind] + i];

			has_owners = has_owners || region->process;
			put(table, view, region);
		}
		n_left += view->first[kind + 1] - view->first[kind] - n_shown(view, kind);
	}
	if (!has_owners)
		torsh_table_hide(table, n_columns - 1);
	putchar('\n');
	torsh_table_print(table, stdout);
	torsh_text_more(stdout, n_left);
}

static void print_text(const struct view *view)
{
	const struct regions *regions = &view->options->regions;
	const struct reading *reading = view->reading;
	uint64_t n_left_open = 0;

	for (size_t i = 0; i < regions->n; i++)
		n_left_open += regions->items[i].n_left_open;
	torsh_text_caveats(stdout, reading->recording, reading->processes, reading->n_processes);
	if (!regions->n)
		torsh_text_heading(stdout, "The program named no regions.");
	if (regions->n_steps)
		printf("marked steps: %" PRIu64 "\n", regions->n_steps);
	if (n_left_open)
		printf("still open at the end, and counted as ended there: %" PRIu64 "\n",
		       n_left_open);
	if (regions->n_unpaired_ends)
		printf("ends without a region to end: %" PRIu64 "\n", regions->n_unpaired_ends);
	torsh_selection_text(stdout, &view->prepass);
	print_table(view, REGION_RANGE, REGION_RANGE, range_columns, N_ITEMS(range_columns),
		    put_range);
	print_table(view, REGION_MARK, REGION_MARK, mark_columns, N_ITEMS(mark_columns), put_mark);
	print_table(view, REGION_SCALAR, REGION_SAMPLE, value_columns, N_ITEMS(value_columns),
		    put_value);
	torsh_regions_print_pools(&view->pools);
}

int torsh_command_regions(int argc, char **argv)
{
	struct region_options options = {.read.without = READING_WITHOUT_HEAP | RECORDING_STACKS};
	struct regions *regions = &options.regions;
	struct reading reading;
	struct view view = {.options = &options, .reading = &reading};
	int rc;

	torsh_options_parse_steps(argc, argv, doc, options_regions, parse_regions, &options,
				  &options.read);
	torsh_reading_open(&reading, &options.read);
	torsh_reading_prepass(&view.prepass, &reading, &options.read);
	rc = torsh_regions_find(regions, reading.recording, &view.prepass);
	if (rc >= 0)
		rc = torsh_pools_find(&view.pools, reading.recording, &view.prepass);
	if (rc < 0)
		torsh_die("%s: %s", reading.recording->path, strerror(-rc));
	if (regions->n)
		qsort_r(regions->items, regions->n, sizeof(*regions->items), compare_regions,
			&options.order);
	for (size_t i = 0; i < regions->n; i++)
		view.first[regions->items[i].kind + 1]++;
	for (size_t kind = 0; kind < N_REGION_KINDS; kind++)
		view.first[kind + 1] += view.first[kind];
	if (options.read.is_json)
		print_json(&view);
	else
		print_text(&view);
	torsh_regions_free(regions);
	torsh_pools_free(&view.pools);
	torsh_prepass_free(&view.prepass);
	torsh_reading_close(&reading, &options.read);
	return TORSH_EXIT_DONE;
}
