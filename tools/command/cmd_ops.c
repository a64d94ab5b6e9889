/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * torsh ops: PyTorch's operators by their time, memory and FLOPs, as key_averages().table shows
 * them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/command/command.h"
#include "tools/command/arguments.h"
#include "tools/command/ops_counters.h"
#include "tools/command/ops_fused.h"
#include "tools/command/reading.h"
#include "tools/command/sort.h"
#include "tools/ops/operators.h"
#include "tools/report/counters/cpu_roofline.h"
#include "tools/report/parts.h"
#include "tools/report/selection.h"
#include "tools/report/text.h"
#include "tools/terminal/table.h"

#define TEXT_LIMIT 30
#define UNKNOWN_SHOWN 8

static const char doc[] =
	"Show the operators that PyTorch executed: calls, CPU time, tensor memory and floating point operations.\v"
	"Self is without the operators inside. Percents are of the self time of all operators. p50 and p99 come from a "
	"histogram and may be wrong by 3.1 %. FLOPs are computed from names and shapes; the first sum is what PyTorch's "
	"FlopCounterMode counts (products of matrices, convolutions, attention), the second one also has norms, "
	"elementwise operators, reductions and recurrent layers. Operators without a formula are listed.";

/* SORT(name, weight of a row) */
#define SORTS                                   \
	SORT(self, row->self_cpu_ns)            \
	SORT(total, row->cpu_ns)                \
	SORT(calls, row->calls)                 \
	SORT(average, average_ns(row))          \
	SORT(p99, percentile(row, 0.99))        \
	SORT(device, row->self_device_ns)       \
	SORT(memory, row->self_allocated_bytes) \
	SORT(flops, row->self_flops_all)

enum {
	KEY_SORT_BY = 0x2000,
	KEY_GROUP,
	KEY_THREAD,
	KEY_MERGE_NESTED,
	KEY_NO_MERGE_NESTED,
	KEY_COUNTERS,
	KEY_CPU_PEAK
};

static const struct argp_option own_options[] = {
	{"sort", KEY_SORT_BY, "KEY", 0,
	 "self (default), total, calls, average, p99, device, memory, flops or name", 0},
	{"group", KEY_GROUP, "KEY", 0,
	 "name (default), shape, stack, overload, module, phase or step", 0},
	{"thread", KEY_THREAD, "TID", 0, "only calls that began on this thread", 0},
	{"merge-nested", KEY_MERGE_NESTED, NULL, 0,
	 "count a call that is the only one inside of one of its own name with that, as PyTorch's key_averages() does (default of "
	 "the table)",
	 0},
	{"counters", KEY_COUNTERS, NULL, 0,
	 "what the CPU and the kernel counted in each operator and on each thread", 0},
	{"cpu-peak", KEY_CPU_PEAK, "FLOPS", 0,
	 "what a core of the recorded machine can do in a cycle, for rooflines: 32 in float32 with AVX2 and two FMA units",
	 0},
	{"no-merge-nested", KEY_NO_MERGE_NESTED, NULL, 0, "count every call (default of --json)",
	 0},
	{0},
};

struct ops_options {
	struct operators_request request;
	bool has_merge_nested; /* wish.merge_nested was set by an option */
	bool shows_counters;
	uint64_t cpu_peak; /* 0: not stated */
	const struct sort_key *sort;
};

static uint64_t average_ns(const struct operator_total *total)
{
	return total->calls ? total->cpu_ns / total->calls : 0;
}

static uint64_t percentile(const struct operator_total *total, double share)
{
	return torsh_histogram_percentile(&total->durations, share);
}

#define SORT(name, weight) SORT_WEIGHT(name, struct operator_total, weight)
SORTS
#undef SORT

static const struct sort_key sort_keys[] = {
#define SORT(name, weight) SORT_KEY(name)
	SORTS
#undef SORT
	{"name", NULL},
	{0},
};

static error_t parse_ops(int key, char *argument, struct argp_state *state)
{
	struct ops_options *options = state->input;

	switch (key) {
	case KEY_SORT_BY:
		options->sort = torsh_sort_key(state, sort_keys, argument);
		return 0;
	case KEY_GROUP:
		options->request.group = (enum operator_group)torsh_argument_choice(
			state, "group", torsh_operator_group_names, N_OPERATOR_GROUPS, argument);
		return 0;
	case KEY_THREAD:
		options->request.tid = (uint32_t)torsh_argument_number(state, "thread", argument);
		options->request.has_thread = true;
		return 0;
	case KEY_COUNTERS:
		options->shows_counters = true;
		return 0;
	case KEY_CPU_PEAK:
		options->cpu_peak = torsh_argument_number(state, "cpu-peak", argument);
		if (!options->cpu_peak)
			argp_error(state, "--cpu-peak is at least 1");
		return 0;
	case KEY_MERGE_NESTED:
	case KEY_NO_MERGE_NESTED:
		options->request.merge_nested = key == KEY_MERGE_NESTED;
		options->has_merge_nested = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int compare_names(const void *x, const void *y)
{
	const struct operator_total *a = x, *b = y;
	int rc = strcmp(a->name ? a->name : "", b->name ? b->name : "");

	if (rc == 0)
		rc = strcmp(a->inputs ? a->inputs : "", b->inputs ? b->inputs : "");
	if (rc == 0)
		rc = strcmp(a->overload ? a->overload : "", b->overload ? b->overload : "");
	if (rc == 0)
		rc = (a->step > b->step) - (a->step < b->step);
	return rc ? rc : (a->stack > b->stack) - (a->stack < b->stack);
}

static int compare_unknown(const void *a, const void *b)
{
	const struct operator_unknown *x = a, *y = b;

	return x->calls != y->calls ? (x->calls < y->calls) - (x->calls > y->calls)
				    : strcmp(x->name, y->name);
}

struct view {
	struct operators operators;
	struct prepass prepass;
	const struct reading *reading;
	const struct read_options *options;
	size_t n; /* number of rows printed */
	bool has_tensors;
	struct cpu_roofline_limits roofline;
	struct ops_fused *fused;
	struct traffic_report traffic;
};

/* ---- JSON ------------------------------------------------------------------------------------ */

static void emit_key(struct json_writer *json, const struct view *view,
		     const struct operator_total *total)
{
	switch (view->operators.group) {
	case OPERATORS_BY_SHAPE:
		torsh_json_put_text(json, "inputs", *total->inputs ? total->inputs : NULL);
		break;
	case OPERATORS_BY_STACK:
		torsh_parts_emit_recorded_stack(json, total->process, total->stack,
						view->reading->symbols, view->options->view);
		break;
	case OPERATORS_BY_OVERLOAD:
		torsh_json_put_text(json, "overload", total->overload);
		break;
	case OPERATORS_BY_STEP:
		torsh_json_put_known(json, "step", total->name, total->step);
		break;
	default:
		break;
	}
}

static void emit_total(struct json_writer *json, const struct view *view,
		       const struct operator_total *total)
{
	const char *name = total->name && *total->name ? total->name : NULL;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "name", name);
	emit_key(json, view, total);
	torsh_json_put_u64(json, "calls", total->calls);
	torsh_json_put_u64(json, "cpu_ns", total->cpu_ns);
	torsh_json_put_u64(json, "self_cpu_ns", total->self_cpu_ns);
	/* A graph that was captured elsewhere and ran in these steps has no call in them. */
	torsh_json_put_known(json, "average_ns", total->calls, average_ns(total));
	torsh_json_put_known(json, "min_ns", total->calls, total->min_ns);
	torsh_json_put_known(json, "p50_ns", total->calls, percentile(total, 0.5));
	torsh_json_put_known(json, "p99_ns", total->calls, percentile(total, 0.99));
	torsh_json_put_known(json, "max_ns", total->calls, total->max_ns);
	torsh_json_put_known(json, "device_ns", view->operators.has_devices, total->device_ns);
	torsh_json_put_known(json, "self_device_ns", view->operators.has_devices,
			     total->self_device_ns);
	torsh_cpu_counters_emit(json, "counters", &total->counts);
	torsh_cpu_counters_emit(json, "self_counters", &total->self_counts);
	torsh_cpu_roofline_emit(json, total, &view->roofline);
	torsh_json_put_known(json, "flops", total->has_flops, total->flops);
	torsh_json_put_known(json, "flops_all", total->has_flops, total->flops_all);
	torsh_json_put_known(json, "self_flops", total->has_flops, total->self_flops);
	torsh_json_put_known(json, "self_flops_all", total->has_flops, total->self_flops_all);
	torsh_json_put_known(json, "allocated_bytes", view->has_tensors, total->allocated_bytes);
	torsh_json_put_known(json, "freed_bytes", view->has_tensors, total->freed_bytes);
	torsh_json_put_known(json, "self_allocated_bytes", view->has_tensors,
			     total->self_allocated_bytes);
	torsh_json_put_known(json, "self_freed_bytes", view->has_tensors, total->self_freed_bytes);
	torsh_json_end_object(json);
}

static void emit_unknown(struct json_writer *json, const struct operator_unknown *unknown)
{
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "name", unknown->name);
	torsh_json_put_u64(json, "calls", unknown->calls);
	torsh_json_put_text(json, "reason", unknown->reason);
	torsh_json_end_object(json);
}

static void emit_group(struct json_writer *json, const struct process_group *group)
{
	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "pid", group->process->pid);
	torsh_json_put_u64(json, "number", group->number);
	torsh_json_put_text(json, "name", group->name);
	torsh_json_put_text(json, "description", group->description);
	torsh_json_put_text(json, "backend", group->backend);
	torsh_json_put_u64(json, "size", group->n_ranks);
	torsh_json_put_text(json, "ranks", group->ranks);
	torsh_json_end_object(json);
}

static void print_json(const struct view *view)
{
	const struct operators *operators = &view->operators;
	const struct reading *reading = view->reading;
	struct json_writer json;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	torsh_json_put_text(&json, "group", torsh_operator_group_names[operators->group]);
	torsh_json_put_u64(&json, "calls", operators->calls);
	torsh_json_put_u64(&json, "merged_calls", operators->merged_calls);
	torsh_json_put_u64(&json, "self_cpu_ns", operators->self_cpu_ns);
	torsh_json_put_known(&json, "flops", operators->has_flops, operators->flops);
	torsh_json_put_known(&json, "flops_all", operators->has_flops, operators->flops_all);
	torsh_json_begin_lines(&json, "ops");
	for (size_t i = 0; i < view->n; i++)
		emit_total(&json, view, &operators->items[i]);
	torsh_json_end_array(&json);
	torsh_json_put_u64(&json, "omitted", operators->n - view->n);
	torsh_json_begin_lines(&json, "ops_without_formula");
	for (size_t i = 0; i < operators->n_unknown; i++)
		emit_unknown(&json, &operators->unknown[i]);
	torsh_json_end_array(&json);
	torsh_ops_fused_emit(&json, view->fused);
	torsh_json_begin_lines(&json, "process_groups");
	for (size_t i = 0; i < operators->groups.n; i++)
		emit_group(&json, &operators->groups.items[i]);
	torsh_json_end_array(&json);
	torsh_cpu_counters_emit_reason(&json, &view->prepass);
	torsh_cpu_counters_emit_threads(&json, &view->prepass);
	torsh_cpu_roofline_emit_limits(&json, &view->roofline, &view->traffic);
	torsh_traffic_report_emit(&json, &view->traffic);
	torsh_json_put_u64(&json, "calls_without_inputs", operators->calls_without_inputs);
	torsh_json_put_u64(&json, "cut_calls", view->prepass.counts.n_cut);
	torsh_json_put_u64(&json, "too_deep_calls", view->prepass.counts.n_too_deep);
	torsh_json_put_u64(&json, "unmatched_ends", view->prepass.counts.n_unmatched);
	torsh_reading_end_json(&json, reading, &view->prepass);
}

/* ---- text ------------------------------------------------------------------------------------ */

enum { COLUMN_DEVICE_SELF = 7, COLUMN_DEVICE = 8 };

static const struct table_column columns[] = {
	{"", TABLE_NAME, .cut = CUT_MIDDLE}, /* its heading is the group's name */
	{"calls", TABLE_NUMBER, .drop = 0},	  {"self CPU", TABLE_NUMBER, .drop = 0},
	{"share", TABLE_NUMBER, .drop = 0},	  {"", TABLE_BAR, .drop = 2},
	{"total", TABLE_NUMBER, .drop = 0},	  {"average", TABLE_NUMBER, .drop = 4},
	{"self device", TABLE_NUMBER, .drop = 1}, {"device", TABLE_NUMBER, .drop = 5},
	{"p50", TABLE_NUMBER, .drop = 7},	  {"p99", TABLE_NUMBER, .drop = 6},
	{"self memory", TABLE_NUMBER, .drop = 3}, {"memory", TABLE_NUMBER, .drop = 8},
	{"FLOPs", TABLE_NUMBER, .drop = 5},
};

#define N_COLUMNS (sizeof(columns) / sizeof(*columns))

static void put_name(struct table *table, const struct view *view,
		     const struct operator_total *total)
{
	const char *name = total->name && *total->name ? total->name : NULL;

	if (view->operators.group == OPERATORS_BY_STEP && name)
		torsh_table_cell(table, "step %" PRIu64, total->step);
	else
		torsh_table_cell(table, "%s", name ? name : "(none)");
}

struct below {
	const struct view *view;
	const struct operator_total *total;
};

static void print_stack(void *context, FILE *out)
{
	const struct below *below = context;

	torsh_text_recorded_stack(out, below->total->process, below->total->stack,
				  below->view->reading->symbols, below->view->options->view);
}

/* Put notes that identify the row if its name is not enough. */
static void put_notes(struct table *table, const struct view *view,
		      const struct operator_total *total, struct below *below)
{
	if (total->overload && *total->overload)
		torsh_table_note(table, ".%s", total->overload);
	if (total->inputs)
		torsh_table_note(table, "%s",
				 *total->inputs ? total->inputs : "(inputs are not known)");
	*below = (struct below){.view = view, .total = total};
	if (view->operators.group == OPERATORS_BY_STACK)
		torsh_table_below(table, print_stack, below);
}

static void put_optional(struct table *table, bool is_known, uint64_t value,
			 void put(struct table *table, uint64_t value))
{
	if (is_known)
		put(table, value);
	else
		torsh_table_unknown(table);
}

static void put_total(struct table *table, const struct view *view,
		      const struct operator_total *total)
{
	double self = (double)total->self_cpu_ns, all = (double)view->operators.self_cpu_ns;
	char text[SIZE_TEXT_BYTES];

	put_name(table, view, total);
	torsh_table_count(table, total->calls);
	torsh_table_time(table, total->self_cpu_ns);
	torsh_table_percent(table, self, all);
	torsh_table_bar(table, all > 0 ? self / all : 0);
	torsh_table_time(table, total->cpu_ns);
	torsh_table_time(table, average_ns(total));
	torsh_table_time(table, total->self_device_ns);
	torsh_table_time(table, total->device_ns);
	torsh_table_time(table, percentile(total, 0.5));
	torsh_table_time(table, percentile(total, 0.99));
	put_optional(table, view->has_tensors, total->self_allocated_bytes, torsh_table_bytes);
	put_optional(table, view->has_tensors, total->allocated_bytes, torsh_table_bytes);
	torsh_table_cell(table, "%s",
			 total->has_flops ? torsh_size_si(total->flops_all, text) : "-");
}

static void print_totals(const struct view *view)
{
	struct below *below = torsh_need_items(NULL, 0, view->n, sizeof(*below));
	struct table_column named[N_COLUMNS];
	struct table *table;

	memcpy(named, columns, sizeof(named));
	named[0].heading = torsh_operator_group_names[view->operators.group];
	table = torsh_table_create(named, N_COLUMNS);
	if (!view->operators.has_devices) {
		torsh_table_hide(table, COLUMN_DEVICE_SELF);
		torsh_table_hide(table, COLUMN_DEVICE);
	}
	for (size_t i = 0; i < view->n; i++) {
		put_total(table, view, &view->operators.items[i]);
		put_notes(table, view, &view->operators.items[i], &below[i]);
	}
	putchar('\n');
	torsh_table_print(table, stdout);
	free(below);
}

static void print_merged(const struct operators *operators)
{
	char calls[SIZE_TEXT_BYTES];

	if (operators->merged_calls)
		printf("%s calls inside of one of their own name count with it, as in key_averages(); --no-merge-nested counts "
		       "them apart\n",
		       torsh_size_grouped(operators->merged_calls, calls));
}

static void print_sums(const struct view *view)
{
	const struct operators *operators = &view->operators;
	char calls[SIZE_TEXT_BYTES], self[SIZE_TEXT_BYTES], flops[SIZE_TEXT_BYTES],
		all[SIZE_TEXT_BYTES];
	uint64_t self_ns = operators->self_cpu_ns;

	torsh_text_heading(stdout, "%s calls of operators, %s of CPU time in them",
			   torsh_size_grouped(operators->calls, calls),
			   torsh_size_duration(self_ns, self));
	if (!operators->has_flops) {
		puts("FLOPs: not wanted (TORSH_PROFILER_WITH_FLOPS=0)");
		return;
	}
	printf("FLOPs: %s as FlopCounterMode counts, %s with norms, elementwise operators and the like",
	       torsh_size_si(operators->flops, flops), torsh_size_si(operators->flops_all, all));
	if (self_ns)
		printf(": %.3g GFLOP/s", (double)operators->flops_all / (double)self_ns);
	putchar('\n');
}

static void print_unknown(const struct operators *operators)
{
	char calls[SIZE_TEXT_BYTES];

	if (!operators->n_unknown)
		return;
	printf("\nwithout a formula, not in the FLOPs:");
	for (size_t i = 0; i < operators->n_unknown && i < UNKNOWN_SHOWN; i++)
		printf("%s %s (%s calls)", i ? "," : "", operators->unknown[i].name,
		       torsh_size_grouped(operators->unknown[i].calls, calls));
	if (operators->n_unknown > UNKNOWN_SHOWN)
		printf(" and %zu more", operators->n_unknown - UNKNOWN_SHOWN);
	putchar('\n');
	for (size_t i = 0; i < operators->n_unknown && i < UNKNOWN_SHOWN; i++) {
		if (operators->unknown[i].reason)
			printf("%s: %s\n", operators->unknown[i].name,
			       operators->unknown[i].reason);
	}
	if (operators->calls_without_inputs)
		printf("of these %s calls have no recorded inputs\n",
		       torsh_size_grouped(operators->calls_without_inputs, calls));
}

/* Print sums by their process groups. */
static void print_groups(const struct process_groups *groups)
{
	for (size_t i = 0; i < groups->n; i++) {
		const struct process_group *group = &groups->items[i];

		printf("%sgroup#%" PRIu32 " of pid %" PRIu32 ": %s%s%s, %s, %" PRIu32
		       " ranks: %s\n",
		       i ? "" : "\n", group->number, group->process->pid,
		       group->name ? group->name : "?", group->description ? " " : "",
		       group->description ? group->description : "",
		       group->backend ? group->backend : "?", group->n_ranks,
		       group->ranks ? group->ranks : "?");
	}
}

static void print_text(const struct view *view)
{
	const struct reading *reading = view->reading;
	const struct operators *operators = &view->operators;
	char text[SIZE_TEXT_BYTES];

	torsh_text_caveats(stdout, reading->recording, reading->processes, reading->n_processes);
	torsh_selection_text(stdout, &view->prepass);
	if (view->prepass.counts.n_too_deep)
		printf("%" PRIu64
		       " calls are left out: %u others were open on their threads when they began\n",
		       view->prepass.counts.n_too_deep, SPANS_DEPTH_MAX);
	if (!operators->calls) {
		puts("No operators were recorded.");
		return;
	}
	print_sums(view);
	print_merged(operators);
	if (view->prepass.counts.n_cut)
		printf("%s had no end when the recording ended, and end there\n",
		       torsh_size_counted(view->prepass.counts.n_cut, "call", text));
	print_totals(view);
	torsh_text_more(stdout, operators->n - view->n);
	print_unknown(operators);
	torsh_ops_fused_print(view->fused);
	print_groups(&operators->groups);
}

int torsh_command_ops(int argc, char **argv)
{
	struct read_options options = {.without = READING_WITHOUT_HEAP};
	struct ops_options own = {.sort = sort_keys};
	struct reading reading;
	struct ops_fused fused;
	struct view view = {.reading = &reading, .options = &options, .fused = &fused};

	torsh_options_parse_steps(argc, argv, doc, own_options, parse_ops, &own, &options);
	if (!own.has_merge_nested)
		own.request.merge_nested = !options.is_json;
	if (own.request.group != OPERATORS_BY_STACK)
		options.without |= RECORDING_STACKS;
	torsh_reading_open(&reading, &options);
	torsh_reading_prepass(&view.prepass, &reading, &options);
	for (size_t i = 0; i < view.prepass.n; i++)
		view.has_tensors = view.has_tensors || view.prepass.items[i].n_tensors;
	torsh_operators_collect(&view.operators, &own.request, reading.recording, reading.processes,
				reading.n_processes, &view.prepass);
	torsh_cpu_roofline_limits(&view.roofline, &view.prepass, &view.operators, own.cpu_peak);
	torsh_traffic_report_make(&view.traffic, reading.recording, reading.processes,
				  reading.n_processes);
	torsh_sort_rows(view.operators.items, view.operators.n, sizeof(*view.operators.items),
			own.sort, compare_names);
	if (view.operators.n_unknown)
		qsort(view.operators.unknown, view.operators.n_unknown,
		      sizeof(*view.operators.unknown), compare_unknown);
	view.n = torsh_options_limit(&options, view.operators.n, TEXT_LIMIT);
	torsh_ops_fused_collect(&fused, &reading, &view.prepass);
	if (options.is_json)
		print_json(&view);
	else if (own.shows_counters)
		torsh_ops_counters(&view.operators, view.n, &view.prepass, &view.roofline,
				   &view.traffic);
	else
		print_text(&view);
	torsh_ops_fused_free(&fused);
	torsh_operators_free(&view.operators);
	torsh_prepass_free(&view.prepass);
	torsh_reading_close(&reading, &options);
	return TORSH_EXIT_DONE;
}
