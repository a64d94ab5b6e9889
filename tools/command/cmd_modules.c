/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh modules: time, memory and FLOPs of nn.Modules. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/command/command.h"
#include "tools/command/reading.h"
#include "tools/ops/module_totals.h"
#include "tools/report/counters/cpu_counters.h"
#include "tools/report/selection.h"
#include "tools/report/text.h"
#include "tools/terminal/table.h"

#define TEXT_LIMIT 40

static const char doc[] =
	"Show the nn.Modules that were called: time in their forward, in operators of forward and of backward, FLOPs.\v"
	"The operators of backward belong to the module with their forward operators, by sequence numbers. Self is without "
	"the modules inside, and so is what operators took in forward; forward, backward, FLOPs and device are with those that "
	"were called inside. FLOPs and the times of devices are those of forward and backward.";

static int compare_totals(const void *a, const void *b)
{
	const struct module_total *x = a, *y = b;

	return x->total_ns != y->total_ns
		       ? (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns)
		       : strcmp(x->name, y->name);
}

struct view {
	const struct reading *reading;
	struct prepass prepass;
	struct module_totals totals;
	size_t n;
	bool has_tensors;
};

static void emit_flops(struct json_writer *json, const char *name, const struct view *view,
		       uint64_t flops)
{
	torsh_json_put_known(json, name, !view->reading->recording->without_flops, flops);
}

static void emit_device(struct json_writer *json, const char *name, const struct view *view,
			uint64_t ns)
{
	torsh_json_put_known(json, name, view->totals.has_devices, ns);
}

static void emit_total(struct json_writer *json, const struct view *view,
		       const struct module_total *total)
{
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "name", *total->name ? total->name : NULL);
	torsh_json_put_u64(json, "calls", total->calls);
	torsh_json_put_u64(json, "total_ns", total->total_ns);
	torsh_json_put_u64(json, "self_ns", total->self_ns);
	torsh_json_put_u64(json, "operators", total->operators);
	torsh_json_put_u64(json, "operators_ns", total->operators_ns);
	torsh_json_put_u64(json, "backward_ns", total->whole_backward_ns);
	torsh_json_put_u64(json, "self_backward_ns", total->backward_ns);
	emit_device(json, "device_ns", view, total->whole_device_ns);
	emit_device(json, "self_device_ns", view, total->device_ns);
	torsh_cpu_counters_emit(json, "counters", &total->whole_counts);
	torsh_cpu_counters_emit(json, "self_counters", &total->counts);
	emit_flops(json, "self_flops", view, total->flops);
	emit_flops(json, "self_flops_all", view, total->flops_all);
	emit_flops(json, "flops", view, total->whole_flops);
	emit_flops(json, "flops_all", view, total->whole_flops_all);
	torsh_json_put_known(json, "self_allocated_bytes", view->has_tensors,
			     total->allocated_bytes);
	torsh_json_end_object(json);
}

static void print_json(const struct view *view)
{
	const struct reading *reading = view->reading;
	struct json_writer json;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_begin_lines(&json, "modules");
	for (size_t i = 0; i < view->n; i++)
		emit_total(&json, view, &view->totals.items[i]);
	torsh_json_end_array(&json);
	torsh_json_put_u64(&json, "omitted", view->totals.n - view->n);
	torsh_cpu_counters_emit_reason(&json, &view->prepass);
	torsh_reading_end_json(&json, reading, &view->prepass);
}

enum { COLUMN_DEVICE_SELF = 7, COLUMN_DEVICE = 8 };

static const struct table_column columns[] = {
	{"module", TABLE_NAME, .cut = CUT_START}, {"calls", TABLE_NUMBER, .drop = 0},
	{"forward", TABLE_NUMBER, .drop = 0},	  {"", TABLE_BAR, .drop = 6},
	{"backward", TABLE_NUMBER, .drop = 0},	  {"self", TABLE_NUMBER, .drop = 1},
	{"operators", TABLE_NUMBER, .drop = 4},	  {"self device", TABLE_NUMBER, .drop = 3},
	{"device", TABLE_NUMBER, .drop = 1},	  {"self memory", TABLE_NUMBER, .drop = 3},
	{"self FLOPs", TABLE_NUMBER, .drop = 5},  {"FLOPs", TABLE_NUMBER, .drop = 2},
};

#define N_COLUMNS (sizeof(columns) / sizeof(*columns))

static void put_flops(struct table *table, const struct view *view, uint64_t flops)
{
	char text[SIZE_TEXT_BYTES];

	if (view->reading->recording->without_flops)
		torsh_table_unknown(table);
	else
		torsh_table_cell(table, "%s", torsh_size_si(flops, text));
}

static void put_name(struct table *table, const char *name)
{
	torsh_table_cell(table, "%s",
			 *name ? torsh_module_display_name(name) : "(operators in no module)");
}

static void put_total(struct table *table, const struct view *view,
		      const struct module_total *total, uint64_t most_ns)
{
	put_name(table, total->name);
	torsh_table_count(table, total->calls);
	torsh_table_time(table, total->total_ns);
	torsh_table_bar(table, most_ns ? (double)total->total_ns / (double)most_ns : 0);
	torsh_table_time(table, total->whole_backward_ns);
	torsh_table_time(table, total->self_ns);
	torsh_table_time(table, total->operators_ns);
	torsh_table_time(table, total->device_ns);
	torsh_table_time(table, total->whole_device_ns);
	if (view->has_tensors)
		torsh_table_bytes(table, total->allocated_bytes);
	else
		torsh_table_unknown(table);
	put_flops(table, view, total->flops_all);
	put_flops(table, view, total->whole_flops_all);
}

static void print_totals(const struct view *view)
{
	struct table *table = torsh_table_create(columns, N_COLUMNS);
	uint64_t most_ns = 0;

	for (size_t i = 0; i < view->totals.n; i++) {
		if (view->totals.items[i].total_ns > most_ns)
			most_ns = view->totals.items[i].total_ns;
	}
	if (!view->totals.has_devices) {
		torsh_table_hide(table, COLUMN_DEVICE_SELF);
		torsh_table_hide(table, COLUMN_DEVICE);
	}
	for (size_t i = 0; i < view->n; i++)
		put_total(table, view, &view->totals.items[i], most_ns);
	torsh_table_print(table, stdout);
}

static void print_text(const struct view *view)
{
	const struct reading *reading = view->reading;
	uint64_t n_modules = 0;

	for (size_t i = 0; i < view->prepass.n; i++)
		n_modules += view->prepass.items[i].n_modules;
	torsh_text_caveats(stdout, reading->recording, reading->processes, reading->n_processes);
	torsh_selection_text(stdout, &view->prepass);
	if (!n_modules) {
		puts("No calls of modules were recorded.");
		return;
	}
	print_totals(view);
	torsh_text_more(stdout, view->totals.n - view->n);
}

int torsh_command_modules(int argc, char **argv)
{
	struct read_options options = {.without = READING_WITHOUT_HEAP | RECORDING_STACKS};
	struct reading reading;
	struct view view = {.reading = &reading};

	torsh_options_parse_steps(argc, argv, doc, NULL, NULL, NULL, &options);
	torsh_reading_open(&reading, &options);
	torsh_reading_prepass(&view.prepass, &reading, &options);
	for (size_t i = 0; i < view.prepass.n; i++)
		view.has_tensors = view.has_tensors || view.prepass.items[i].n_tensors;
	torsh_module_totals_collect(&view.totals, reading.recording, reading.processes,
				    reading.n_processes, &view.prepass);
	if (view.totals.n)
		qsort(view.totals.items, view.totals.n, sizeof(*view.totals.items), compare_totals);
	view.n = torsh_options_limit(&options, view.totals.n, TEXT_LIMIT);
	if (options.is_json)
		print_json(&view);
	else
		print_text(&view);
	torsh_module_totals_free(&view.totals);
	torsh_prepass_free(&view.prepass);
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
