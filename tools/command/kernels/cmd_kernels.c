/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh kernels: device activity, and the operators that launched it. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/command/command.h"
#include "tools/command/kernels/kernel_counters.h"
#include "tools/command/kernels/kernels_calls.h"
#include "tools/command/kernels/kernels_lines.h"
#include "tools/command/reading.h"
#include "tools/command/sort.h"
#include "tools/device/kernels/kernel_groups.h"
#include "tools/report/device_mode.h"
#include "tools/report/selection.h"
#include "tools/report/text.h"
#include "tools/symbols/symbols.h"
#include "tools/terminal/table.h"
#include "tools/terminal/terminal.h"
#include "tools/terminal/width.h"

#define TEXT_LIMIT 30
#define OPS_SHOWN 3
#define NAME_LONGEST 150 /* columns: longer C++ templates are cut here; JSON has them whole */

static const char doc[] =
	"Show the kernels, copies and memsets of CUDA devices, with the operators that launched them.\v"
	"Something belongs to the operator that was innermost on the thread which launched it (confidence high); where there was "
	"none, to a range of NVTX, ITT or torsh.h around the launch that is named like an operator, or to the operators from "
	"which torch.compile made the kernel (medium). What has none is listed with the reason, and with what its name gives "
	"away (low). A kernel of a CUDA graph belongs to the operator that captured it, "
	"and where there was none, to what launched the graph. Times are the device's own; without CUPTI "
	"they are upper bounds by pairs of events, or none. What was launched in a step belongs to it, whenever it ran. "
	"With the line that captured it, and with TORSH_PROFILER_OPERATOR_STACKS=1 also of what was launched without a graph.";

/* SORT(name, weight of a row) */
#define SORTS                                          \
	SORT(total, row->total_ns)                     \
	SORT(calls, row->calls)                        \
	SORT(average, torsh_kernel_group_average(row)) \
	SORT(max, row->max_ns)                         \
	SORT(bytes, row->bytes)

enum { OPTION_SORT = 0x2000, OPTION_COUNTERS };

static const struct argp_option own_options[] = {
	{"sort", OPTION_SORT, "KEY", 0, "total (default), calls, average, max, bytes or name", 0},
	{"counters", OPTION_COUNTERS, NULL, 0,
	 "show what was measured of kernels (TORSH_PROFILER_COUNTERS=operators)", 0},
	{0},
};

struct view {
	const struct reading *reading;
	const struct read_options *options;
	struct prepass prepass;
	struct kernels kernels;
	struct kernel_group *groups; /* in the selected order */
	size_t n_groups;
	bool has_operators, shows_counters;
	const struct sort_key *sort;
};

#define SORT(name, weight) SORT_WEIGHT(name, struct kernel_group, weight)
SORTS
#undef SORT

static const struct sort_key sort_keys[] = {
#define SORT(name, weight) SORT_KEY(name)
	SORTS
#undef SORT
	{"name", NULL},
	{0},
};

static int compare_names(const void *a, const void *b)
{
	const struct kernel_group *x = a, *y = b;

	return strcmp(x->rows->name, y->rows->name);
}

static int compare_calls(const void *a, const void *b)
{
	const struct kernel_group *x = a, *y = b;

	return x->calls != y->calls ? (x->calls < y->calls) - (x->calls > y->calls)
				    : compare_names(a, b);
}

static const char *shown_name(const struct view *view, const struct kernel_row *row)
{
	return row->what == DEVICE_KERNEL
		       ? torsh_symbols_demangle(view->reading->symbols, row->name)
		       : row->name;
}

/* Emit the evidence for the attribution. */
static void emit_method(struct json_writer *json, enum attribution_method method)
{
	torsh_json_put_text(json, "method", torsh_attribution_words[method].detail);
	torsh_json_put_text(json, "confidence", torsh_attribution_words[method].confidence);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* null: none of them was timed. */
static void emit_time(struct json_writer *json, const char *name, uint64_t n_timed, uint64_t ns)
{
	torsh_json_put_known(json, name, n_timed, ns);
}

static void emit_operators(struct json_writer *json, const struct kernel_group *group)
{
	torsh_json_begin_array(json, "ops");
	for (size_t i = 0; i < group->n; i++) {
		const struct kernel_row *row = &group->rows[i];

		if (row->reason)
			continue;
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "name", row->operator_name);
		torsh_json_put_u64(json, "calls", row->calls);
		emit_time(json, "total_ns", row->timed, row->total_ns);
		emit_method(json, row->method);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void emit_group(struct json_writer *json, const struct view *view,
		       const struct kernel_group *group)
{
	torsh_json_begin_object(json, NULL);
	if (group->rows->what == DEVICE_KERNEL) {
		torsh_json_put_text(json, "name", shown_name(view, group->rows));
		torsh_json_put_text(json, "symbol", group->rows->name);
		torsh_kernel_counters_json(json, &view->kernels.counters, group->rows->name);
	} else if (group->rows->what != DEVICE_GRAPH) {
		torsh_json_put_text(json, "kind", group->rows->name);
		torsh_json_put_u64(json, "bytes", group->bytes);
	}
	torsh_json_put_u64(json, "calls", group->calls);
	torsh_json_put_u64(json, "timed_calls", group->timed);
	emit_time(json, "total_ns", group->timed, group->total_ns);
	emit_time(json, "min_ns", group->timed, group->min_ns);
	emit_time(json, "max_ns", group->timed, group->max_ns);
	emit_operators(json, group);
	torsh_kernels_emit_lines(json, &view->kernels, group->rows, group->calls,
				 view->reading->symbols);
	if (group->rows->what == DEVICE_KERNEL)
		torsh_kernels_emit_shapes(json, &view->kernels.calls, group->rows->name);
	torsh_json_end_object(json);
}

#define WHAT(what) (1u << DEVICE_##what)

/* Emit up to limit rows; returns the number left out. */
static size_t emit_groups(struct json_writer *json, const struct view *view, uint32_t whats,
			  size_t limit)
{
	size_t n = 0;

	for (size_t i = 0; i < view->n_groups; i++) {
		if (!(whats >> view->groups[i].rows->what & 1))
			continue;
		if (n++ < limit)
			emit_group(json, view, &view->groups[i]);
	}
	return n > limit ? n - limit : 0;
}

static void emit_unattributed(struct json_writer *json, const struct view *view,
			      const struct kernel_row *row)
{
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "what", torsh_device_what_names[row->what]);
	torsh_json_put_text(json, "name", shown_name(view, row));
	torsh_json_put_u64(json, "calls", row->calls);
	emit_time(json, "total_ns", row->timed, row->total_ns);
	torsh_json_put_text(json, "reason", torsh_kernel_reasons[row->reason]);
	emit_method(json, row->method);
	torsh_json_put_text(json, "family", row->family);
	torsh_json_end_object(json);
}

static void print_json(const struct view *view)
{
	const struct kernels *kernels = &view->kernels;
	const struct reading *reading = view->reading;
	size_t limit = torsh_options_limit(view->options, view->n_groups, TEXT_LIMIT), omitted;
	struct json_writer json;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_put_u64(&json, "total_ns", kernels->total_ns);
	torsh_json_put_u64(&json, "attributed_ns", kernels->attributed_ns);
	torsh_json_begin_lines(&json, "kernels");
	omitted = emit_groups(&json, view, WHAT(KERNEL), limit);
	torsh_json_end_array(&json);
	torsh_json_put_u64(&json, "omitted", omitted);
	torsh_json_begin_lines(&json, "copies");
	emit_groups(&json, view, WHAT(COPY) | WHAT(MEMSET), view->n_groups);
	torsh_json_end_array(&json);
	torsh_json_begin_lines(&json, "graphs");
	emit_groups(&json, view, WHAT(GRAPH), view->n_groups);
	torsh_json_end_array(&json);
	torsh_json_begin_lines(&json, "unattributed");
	for (size_t i = 0; i < kernels->n; i++) {
		if (kernels->rows[i].reason)
			emit_unattributed(&json, view, &kernels->rows[i]);
	}
	torsh_json_end_array(&json);
	torsh_kernels_emit_calls(&json, &kernels->calls);
	torsh_json_begin_lines(&json, "processes");
	for (size_t i = 0; i < kernels->n_processes; i++) {
		if (kernels->processes[i].has_mode)
			torsh_device_mode_json(&json, &kernels->processes[i]);
	}
	torsh_json_end_array(&json);
	torsh_kernel_counters_modes_json(&json, &kernels->counters);
	torsh_reading_end_json(&json, reading, &view->prepass);
}

/* ---- text ------------------------------------------------------------------------------------ */

enum {
	COLUMN_NAME,
	COLUMN_CALLS,
	COLUMN_TOTAL,
	COLUMN_SHARE,
	COLUMN_BAR,
	COLUMN_AVERAGE,
	COLUMN_MAX,
	COLUMN_BYTES,
	N_COLUMNS
};

static const struct table_column columns[N_COLUMNS] = {
	[COLUMN_NAME] = {"kernel, copy or memset", TABLE_NAME, .cut = CUT_END},
	[COLUMN_CALLS] = {"calls", TABLE_NUMBER, .drop = 0},
	[COLUMN_TOTAL] = {"total", TABLE_NUMBER, .drop = 0},
	[COLUMN_SHARE] = {"share", TABLE_NUMBER, .drop = 0},
	[COLUMN_BAR] = {"", TABLE_BAR, .drop = 3},
	[COLUMN_AVERAGE] = {"average", TABLE_NUMBER, .drop = 1},
	[COLUMN_MAX] = {"longest", TABLE_NUMBER, .drop = 4},
	[COLUMN_BYTES] = {"bytes", TABLE_NUMBER, .drop = 2},
};

/* Returns "54 calls, 270 µs"; the time is that of the timed calls. The caller frees it. */
static char *calls_text(uint64_t calls, uint64_t timed, uint64_t total_ns)
{
	char n[SIZE_TEXT_BYTES], total[SIZE_TEXT_BYTES];

	torsh_size_counted(calls, "call", n);
	return timed ? torsh_need_text("%s, %s", n, torsh_size_duration(total_ns, total))
		     : torsh_need_text("%s", n);
}

/* Put the launching operators below the kernel; if no kernel has any, the heading reports it. */
static void put_operators(struct table *table, const struct view *view,
			  const struct kernel_group *group)
{
	for (size_t i = 0; i < group->n && i < OPS_SHOWN; i++) {
		const struct kernel_row *row = &group->rows[i];
		bool has_family = row->reason && row->family && row->what == DEVICE_KERNEL;
		char *calls;

		if (row->reason == KERNEL_NO_OPERATOR && !view->has_operators)
			continue;
		calls = calls_text(row->calls, row->timed, row->total_ns);
		if (row->reason)
			torsh_table_note(
				table, "%s: %s%s%s", calls, torsh_kernel_reasons[row->reason],
				has_family ? "; by its name " : "", has_family ? row->family : "");
		else
			torsh_table_note(
				table, "%s in %s%s  (confidence %s)", calls, row->operator_name,
				row->method == ATTRIBUTION_BY_CAPTURE ? ", captured in a graph"
								      : "",
				torsh_attribution_words[row->method].confidence);
		free(calls);
	}
	if (group->n > OPS_SHOWN)
		torsh_table_note(table, "... and %zu more", group->n - OPS_SHOWN);
}

/* What is printed below a row's notes. */
struct below {
	const struct view *view;
	const char *name;
};

static void print_counters(void *context, FILE *out)
{
	const struct below *below = context;

	(void)out;
	torsh_kernel_counters_print(&below->view->kernels.counters, below->name);
}

/* Returns the part of a name that begins with the function. */
static const char *without_namespaces(const char *name)
{
	static const char anonymous[] = "(anonymous namespace)";
	const char *function = name, *at = name;

	while (*at && *at != '<' && *at != ' ') {
		if (strncmp(at, anonymous, sizeof(anonymous) - 1) == 0) {
			at += sizeof(anonymous) - 1;
		} else if (strncmp(at, "::", 2) == 0) {
			at += 2;
			function = at;
		} else if (*at == '(') {
			break;
		} else {
			at++;
		}
	}
	return function;
}

/*
 * Returns a name without parts that every kernel has, and without control characters. The caller
 * frees it.
 */
static char *name_text(const struct view *view, const struct kernel_row *row)
{
	const char *name = shown_name(view, row);
	char *text, *cut;

	if (row->what == DEVICE_KERNEL && strncmp(name, "void ", 5) == 0)
		name += 5;
	if (row->what == DEVICE_KERNEL && torsh_width_limit())
		name = without_namespaces(name);
	text = torsh_need_text("%s%s", row->what == DEVICE_COPY ? "copy " : "", name);
	for (char *at = text; *at; at++)
		*at = iscntrl((unsigned char)*at) ? '?' : *at;
	torsh_terminal_clean(text);
	cut = torsh_columns_cut(text, NAME_LONGEST, CUT_MIDDLE);
	free(text);
	return cut;
}

/* "-" if none of its calls was timed. */
static void put_time(struct table *table, const struct kernel_group *group, uint64_t ns)
{
	if (group->timed)
		torsh_table_time(table, ns);
	else
		torsh_table_unknown(table);
}

static void put_group(struct table *table, const struct view *view,
		      const struct kernel_group *group, struct below *below)
{
	const struct kernel_row *row = group->rows;
	uint64_t all_ns = view->kernels.total_ns;
	bool has_bytes = row->what != DEVICE_KERNEL && row->what != DEVICE_GRAPH;
	char *name = name_text(view, row);

	torsh_table_cell(table, "%s", name);
	free(name);
	torsh_table_count(table, group->calls);
	put_time(table, group, group->total_ns);
	torsh_table_percent(table, (double)group->total_ns, (double)all_ns);
	torsh_table_bar(table, all_ns ? (double)group->total_ns / (double)all_ns : 0);
	put_time(table, group, torsh_kernel_group_average(group));
	put_time(table, group, group->max_ns);
	if (has_bytes)
		torsh_table_bytes(table, group->bytes);
	else
		torsh_table_unknown(table);
	put_operators(table, view, group);
	torsh_kernels_put_lines(table, &view->kernels, row, view->reading->symbols);
	*below = (struct below){.view = view, .name = row->name};
	if (view->shows_counters && row->what == DEVICE_KERNEL)
		torsh_table_below(table, print_counters, below);
}

static void print_groups(const struct view *view, size_t n)
{
	struct table *table = torsh_table_create(columns, N_COLUMNS);
	struct below *below = torsh_need_items(NULL, 0, n, sizeof(*below));
	bool has_bytes = false;

	for (size_t i = 0; i < n; i++) {
		has_bytes = has_bytes || view->groups[i].bytes;
		put_group(table, view, &view->groups[i], &below[i]);
	}
	if (!has_bytes)
		torsh_table_hide(table, COLUMN_BYTES);
	torsh_table_print(table, stdout);
	free(below);
}

static void print_text(const struct view *view)
{
	const struct reading *reading = view->reading;
	size_t n = torsh_options_limit(view->options, view->n_groups, TEXT_LIMIT);
	char total[SIZE_TEXT_BYTES], share[SIZE_TEXT_BYTES];

	torsh_text_caveats(stdout, reading->recording, reading->processes, reading->n_processes);
	torsh_selection_text(stdout, &view->prepass);
	for (size_t i = 0; i < view->kernels.n_processes; i++)
		torsh_device_mode_text(stdout, &view->kernels.processes[i]);
	torsh_kernel_counters_modes_print(&view->kernels.counters);
	if (!view->n_groups) {
		puts("No device was seen at work.");
		return;
	}
	if (view->has_operators)
		torsh_text_heading(
			stdout, "%s of devices' time, %s of it in operators",
			torsh_size_duration(view->kernels.total_ns, total),
			torsh_size_percent(torsh_kernels_share(&view->kernels), 1, share));
	else
		torsh_text_heading(stdout, "%s of devices' time, launched without operators",
				   torsh_size_duration(view->kernels.total_ns, total));
	putchar('\n');
	print_groups(view, n);
	torsh_text_more(stdout, view->n_groups - n);
	torsh_kernels_show_calls(&view->kernels.calls);
}

/* ---- the command ----------------------------------------------------------------------------- */

static error_t parse_own(int key, char *argument, struct argp_state *state)
{
	struct view *view = state->input;

	switch (key) {
	case OPTION_COUNTERS:
		view->shows_counters = true;
		return 0;
	case OPTION_SORT:
		view->sort = torsh_sort_key(state, sort_keys, argument);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int torsh_command_kernels(int argc, char **argv)
{
	struct read_options options = {.without = READING_WITHOUT_HEAP};
	struct reading reading;
	struct view view = {.reading = &reading, .options = &options, .sort = sort_keys};

	torsh_options_parse_steps(argc, argv, doc, own_options, parse_own, &view, &options);
	torsh_reading_open(&reading, &options);
	torsh_reading_prepass(&view.prepass, &reading, &options);
	torsh_kernels_collect(&view.kernels, reading.recording, reading.processes,
			      reading.n_processes, &view.prepass);
	view.has_operators =
		torsh_prepass_has_operators(&view.prepass) || view.kernels.attributed_ns;
	view.groups = torsh_kernel_groups_make(&view.kernels, &view.n_groups);
	torsh_sort_rows(view.groups, view.n_groups, sizeof(*view.groups), view.sort,
			view.sort->weight ? compare_calls : compare_names);
	if (options.is_json)
		print_json(&view);
	else
		print_text(&view);
	free(view.groups);
	torsh_kernels_free(&view.kernels);
	torsh_prepass_free(&view.prepass);
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
