/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh blas: a program's calls of BLAS, LAPACK and the like, by routine and sizes. */
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/command/command.h"
#include "tools/command/reading.h"
#include "tools/command/sort.h"
#include "tools/ops/library_flops.h"
#include "tools/ops/library_shapes.h"
#include "tools/report/parts.h"
#include "tools/report/text.h"
#include "tools/terminal/table.h"

#define TEXT_LIMIT 40
#define LETTERS 4

static const char doc[] =
	"Show a recorded program's calls of BLAS, LAPACK, FFTW, oneDNN, cuBLAS, cublasLt, cuDNN and cuFFT: "
	"routine, sizes, how often and how long, and the FLOPs that follow from the sizes.\v"
	"They are recorded with TORSH_PROFILER_ACTIVITIES=cpu,blas. A routine that another one calls is a "
	"part of it. Where several libraries define a routine and the loader binds it at its first call, "
	"calls that other threads make before this has ended are not seen; with LD_BIND_NOW=1 all are.";

/* Calls of all selected processes with the same routine, library, sizes and letters. */
struct call_row {
	struct recorded_library_call call;
	uint64_t flops; /* of all calls */
	const char *unknown; /* why these are not known; NULL: they are */
};

struct blas_options {
	struct read_options read;
	const struct sort_key *sort;
};

enum { KEY_SORT = 0x2000 };

static const struct argp_option options_blas[] = {
	{"sort", KEY_SORT, "KEY", 0, "total (default), calls, flops or max", 0},
	{0},
};

SORT_WEIGHT(total, struct call_row, row->call.total_ns)
SORT_WEIGHT(calls, struct call_row, row->call.calls)
SORT_WEIGHT(flops, struct call_row, row->flops)
SORT_WEIGHT(max, struct call_row, row->call.max_ns)

static const struct sort_key sort_keys[] = {SORT_KEY(total) SORT_KEY(calls) SORT_KEY(flops)
						    SORT_KEY(max){0}};

static error_t parse_blas(int key, char *argument, struct argp_state *state)
{
	struct blas_options *options = state->input;

	if (key != KEY_SORT)
		return ARGP_ERR_UNKNOWN;
	options->sort = torsh_sort_key(state, sort_keys, argument);
	return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct call_rows {
	struct call_row *items;
	size_t n, room;
};

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* By what distinguishes rows. */
static int compare_keys(const void *left, const void *right)
{
	const struct recorded_library_call *a = &((const struct call_row *)left)->call;
	const struct recorded_library_call *b = &((const struct call_row *)right)->call;
	int by = compare_texts(a->name, b->name);

	by = by ? by : compare_texts(a->library, b->library);
	by = by ? by : compare_numbers(a->m, b->m);
	by = by ? by : compare_numbers(a->n, b->n);
	by = by ? by : compare_numbers(a->k, b->k);
	by = by ? by : compare_numbers(a->batch, b->batch);
	by = by ? by : compare_numbers(a->type, b->type);
	by = by ? by : compare_numbers(a->letters, b->letters);
	by = by ? by : compare_texts(a->shape, b->shape);
	by = by ? by : compare_texts(a->details, b->details);
	return by ? by : compare_numbers(a->is_rest, b->is_rest);
}

static void merge(struct recorded_library_call *into, const struct recorded_library_call *call)
{
	into->calls += call->calls;
	into->total_ns += call->total_ns;
	into->min_ns = call->min_ns < into->min_ns ? call->min_ns : into->min_ns;
	into->max_ns = call->max_ns > into->max_ns ? call->max_ns : into->max_ns;
}

static uint64_t product(uint64_t a, uint64_t b)
{
	uint64_t all;

	return __builtin_mul_overflow(a, b, &all) ? UINT64_MAX : all;
}

static void collect(struct call_rows *rows, const struct reading *reading)
{
	size_t n = 0;

	for (size_t p = 0; p < reading->n_processes; p++) {
		const struct recorded_library *library = &reading->processes[p]->library;

		for (size_t i = 0; i < library->n_calls; i++) {
			rows->items = torsh_array_reserve(rows->items, rows->n, &rows->room,
							  sizeof(*rows->items));
			rows->items[rows->n] = (struct call_row){.call = library->calls[i]};
			torsh_library_set_sizes(&rows->items[rows->n++].call);
		}
	}
	if (rows->n)
		qsort(rows->items, rows->n, sizeof(*rows->items), compare_keys);
	for (size_t i = 0; i < rows->n; i++) {
		if (n && !compare_keys(&rows->items[n - 1], &rows->items[i]))
			merge(&rows->items[n - 1].call, &rows->items[i].call);
		else
			rows->items[n++] = rows->items[i];
	}
	rows->n = n;
	for (size_t i = 0; i < n; i++) {
		struct call_row *row = &rows->items[i];
		uint64_t flops;

		row->unknown = torsh_library_flops(&row->call, &flops);
		row->flops = product(flops, row->call.calls);
	}
}

/* The routine's arguments that are letters, "NT" for a product with a transposed matrix. */
static const char *letters_of(const struct recorded_library_call *call, char text[LETTERS + 1])
{
	uint32_t i = 0;

	for (; i < LETTERS && (call->letters >> 8 * i & 0xff); i++)
		text[i] = (char)(call->letters >> 8 * i & 0x7f);
	text[i] = 0;
	return text;
}

/* A device works on while the call has returned. */
static bool has_speed(const struct call_row *row)
{
	return !row->unknown && row->call.total_ns &&
	       !(row->call.name && !strncmp(row->call.name, "cu", 2));
}

/* FLOPs per ns are 10^9 FLOPs per s. */
static double speed_of(const struct call_row *row)
{
	return (double)row->flops / (double)row->call.total_ns;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void emit_size(struct json_writer *json, const char *name, uint64_t size)
{
	if (size)
		torsh_json_put_u64(json, name, size - 1);
	else
		torsh_json_put_null(json, name);
}

static void emit_row(struct json_writer *json, const struct call_row *row)
{
	const struct recorded_library_call *call = &row->call;
	char letters[LETTERS + 1];

	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "name", call->name);
	torsh_json_put_text(json, "routine", call->routine);
	torsh_json_put_text(json, "library", call->library);
	emit_size(json, "m", call->m);
	emit_size(json, "n", call->n);
	emit_size(json, "k", call->k);
	emit_size(json, "batch", call->batch);
	torsh_json_put_text(json, "letters", letters_of(call, letters));
	torsh_json_put_text(json, "shape", call->shape);
	torsh_json_put_text(json, "details", call->details);
	torsh_json_put_text(json, "type", torsh_library_type(call->type));
	torsh_json_put_u64(json, "calls", call->calls);
	if (row->unknown)
		torsh_json_put_null(json, "flops");
	else
		torsh_json_put_u64(json, "flops", row->flops);
	if (has_speed(row))
		torsh_json_put_double(json, "gflops_per_s", speed_of(row));
	else
		torsh_json_put_null(json, "gflops_per_s");
	torsh_json_put_text(json, "flops_reason", row->unknown);
	torsh_json_put_u64(json, "total_ns", call->total_ns);
	torsh_json_put_u64(json, "min_ns", call->min_ns);
	torsh_json_put_u64(json, "max_ns", call->max_ns);
	torsh_json_end_object(json);
}

static void print_json(const struct call_rows *rows, size_t n_shown, const struct reading *reading)
{
	struct json_writer json;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_begin_lines(&json, "calls");
	for (size_t i = 0; i < n_shown; i++)
		emit_row(&json, &rows->items[i]);
	torsh_json_end_array(&json);
	torsh_json_put_u64(&json, "omitted", rows->n - n_shown);
	torsh_parts_emit_events(&json, reading->processes, reading->n_processes);
	torsh_parts_emit_recording(&json, reading->recording);
	torsh_parts_emit_notes(&json, reading->processes, reading->n_processes);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
}

/* ---- text ------------------------------------------------------------------------------------ */

static const struct table_column columns[] = {
	{"calls", TABLE_NUMBER, .drop = 0},   {"total", TABLE_NUMBER, .drop = 0},
	{"average", TABLE_NUMBER, .drop = 2}, {"FLOPs", TABLE_NUMBER, .drop = 4},
	{"GFLOP/s", TABLE_NUMBER, .drop = 1}, {"routine", TABLE_NAME, .cut = CUT_MIDDLE},
	{"m", TABLE_NUMBER, .drop = 0},	      {"n", TABLE_NUMBER, .drop = 0},
	{"k", TABLE_NUMBER, .drop = 0},	      {"batch", TABLE_NUMBER, .drop = 0},
	{"letters", TABLE_TEXT, .drop = 5},   {"shape", TABLE_TEXT, .drop = 6},
	{"library", TABLE_TEXT, .drop = 3},   {"details", TABLE_TEXT, .drop = 7},
};

enum { COLUMN_BATCH = 9, COLUMN_SHAPE = 11, COLUMN_DETAILS = 13 };

static void put_size(struct table *table, uint64_t size)
{
	if (size)
		torsh_table_count(table, size - 1);
	else
		torsh_table_cell(table, "%s", "");
}

static void put_row(struct table *table, const struct call_row *row)
{
	const struct recorded_library_call *call = &row->call;
	char letters[LETTERS + 1];

	torsh_table_count(table, call->calls);
	torsh_table_time(table, call->total_ns);
	torsh_table_time(table, call->calls ? call->total_ns / call->calls : 0);
	if (row->unknown)
		torsh_table_unknown(table);
	else
		torsh_table_count(table, row->flops);
	if (has_speed(row))
		torsh_table_cell(table, "%.2f", speed_of(row));
	else
		torsh_table_unknown(table);
	torsh_table_cell(table, "%s", torsh_library_title(call));
	put_size(table, call->m);
	put_size(table, call->n);
	put_size(table, call->k);
	put_size(table, call->batch);
	torsh_table_cell(table, "%s", letters_of(call, letters));
	torsh_table_cell(table, "%s", call->shape ? call->shape : "");
	torsh_table_cell(table, "%s", call->library && *call->library ? call->library : "?");
	torsh_table_cell(table, "%s", call->details ? call->details : "");
}

static void print_text(const struct call_rows *rows, size_t n_shown, const struct reading *reading)
{
	struct table *table;
	bool has_batch = false, has_shape = false, has_details = false;

	torsh_text_caveats(stdout, reading->recording, reading->processes, reading->n_processes);
	if (!rows->n) {
		torsh_text_heading(stdout, "No calls of BLAS or the like were recorded.");
		printf("They are with TORSH_PROFILER_ACTIVITIES=cpu,blas, where a program calls them in a "
		       "library.\n");
		return;
	}
	table = torsh_table_create(columns, sizeof(columns) / sizeof(*columns));
	for (size_t i = 0; i < n_shown; i++) {
		has_batch = has_batch || rows->items[i].call.batch;
		has_shape = has_shape || rows->items[i].call.shape;
		has_details = has_details || rows->items[i].call.details;
		put_row(table, &rows->items[i]);
	}
	if (!has_batch)
		torsh_table_hide(table, COLUMN_BATCH);
	if (!has_shape)
		torsh_table_hide(table, COLUMN_SHAPE);
	if (!has_details)
		torsh_table_hide(table, COLUMN_DETAILS);
	putchar('\n');
	torsh_table_print(table, stdout);
	torsh_text_more(stdout, rows->n - n_shown);
}

int torsh_command_blas(int argc, char **argv)
{
	struct blas_options options = {.read.without = READING_WITHOUT_HEAP | RECORDING_STACKS,
				       .sort = sort_keys};
	struct call_rows rows = {0};
	struct reading reading;
	size_t n_shown;

	torsh_options_parse(argc, argv, doc, options_blas, parse_blas, &options, &options.read);
	torsh_reading_open(&reading, &options.read);
	collect(&rows, &reading);
	torsh_sort_rows(rows.items, rows.n, sizeof(*rows.items), options.sort, compare_keys);
	n_shown = torsh_options_limit(&options.read, rows.n, TEXT_LIMIT);
	if (options.read.is_json)
		print_json(&rows, n_shown, &reading);
	else
		print_text(&rows, n_shown, &reading);
	free(rows.items);
	torsh_reading_close(&reading, &options.read);
	return TORSH_EXIT_DONE;
}
