/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/ops_counters.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "tools/base/size.h"
#include "tools/report/text.h"
#include "tools/terminal/table.h"

#define THREADS_SHOWN 20u

static const struct table_column columns[] = {
	{"", TABLE_NAME, .cut = CUT_MIDDLE},	   {"CPU", TABLE_NUMBER, .drop = 0},
	{"instructions", TABLE_NUMBER, .drop = 1}, {"IPC", TABLE_NUMBER, .drop = 0},
	{"branch", TABLE_NUMBER, .drop = 5},	   {"L1d", TABLE_NUMBER, .drop = 4},
	{"LLC", TABLE_NUMBER, .drop = 1},	   {"TLB", TABLE_NUMBER, .drop = 4},
	{"FLOPs/cycle", TABLE_NUMBER, .drop = 1},  {"GB/s", TABLE_NUMBER, .drop = 3},
	{"faults", TABLE_NUMBER, .drop = 2},	   {"major", TABLE_NUMBER, .drop = 3},
	{"waited", TABLE_NUMBER, .drop = 2},	   {"preempted", TABLE_NUMBER, .drop = 3},
	{"migrated", TABLE_NUMBER, .drop = 5},
};

enum { COLUMN_HARDWARE = 2, COLUMN_ROOFLINE = 8, COLUMN_SOFTWARE = 10 };

#define N_COLUMNS (sizeof(columns) / sizeof(*columns))

static void put_count(struct table *table, const struct cpu_counts *counts,
		      enum cpu_counter counter, void put(struct table *table, uint64_t value))
{
	double value;

	if (torsh_cpu_counts_value(counts, counter, &value))
		put(table, (uint64_t)(value + 0.5));
	else
		torsh_table_unknown(table);
}

static void put_ratio(struct table *table, const struct cpu_counts *counts,
		      enum cpu_counter counter, enum cpu_counter of, double scale)
{
	double value;

	if (torsh_cpu_counts_ratio(counts, counter, of, scale, &value))
		torsh_table_cell(table, "%.3g", value);
	else
		torsh_table_unknown(table);
}

static void put_si(struct table *table, uint64_t count)
{
	char text[SIZE_TEXT_BYTES];

	torsh_table_cell(table, "%s", torsh_size_si(count, text));
}

static void put_known(struct table *table, double value)
{
	if (isnan(value))
		torsh_table_unknown(table);
	else
		torsh_table_cell(table, "%.3g", value);
}

/* roofline: NULL for threads */
static void put_counts(struct table *table, const struct cpu_counts *counts,
		       const struct cpu_roofline *roofline)
{
	static const enum cpu_counter misses[] = {CPU_COUNTER_BRANCH_MISSES, CPU_COUNTER_L1D_MISSES,
						  CPU_COUNTER_LLC_MISSES, CPU_COUNTER_DTLB_MISSES};

	put_count(table, counts, CPU_COUNTER_TASK_CLOCK, torsh_table_time);
	put_count(table, counts, CPU_COUNTER_INSTRUCTIONS, put_si);
	put_ratio(table, counts, CPU_COUNTER_INSTRUCTIONS, CPU_COUNTER_CYCLES, 1);
	for (size_t i = 0; i < sizeof(misses) / sizeof(*misses); i++)
		put_ratio(table, counts, misses[i], CPU_COUNTER_INSTRUCTIONS, 1000);
	put_known(table, roofline ? roofline->flops_per_cycle : NAN);
	put_known(table, roofline ? roofline->llc_gb_per_s : NAN);
	for (int i = CPU_COUNTER_MINOR_FAULTS; i < N_CPU_COUNTERS; i++)
		put_count(table, counts, (enum cpu_counter)i, torsh_table_count);
}

/* named: the table's columns, which live as long as it. */
static struct table *begin_table(struct table_column *named, const char *heading, bool has_hardware)
{
	struct table *table;

	memcpy(named, columns, sizeof(columns));
	named[0].heading = heading;
	table = torsh_table_create(named, N_COLUMNS);
	for (size_t i = COLUMN_HARDWARE; i < COLUMN_SOFTWARE && !has_hardware; i++)
		torsh_table_hide(table, i);
	return table;
}

static bool has_hardware(const struct prepass *prepass)
{
	for (size_t i = 0; i < prepass->n; i++)
		if (prepass->items[i].counts.is_known &&
		    prepass->items[i].counts.mode.hardware != CPU_COUNTERS_NONE)
			return true;
	return false;
}

static void print_operators(const struct operators *operators, size_t n, bool is_hardware,
			    const struct cpu_roofline_limits *limits)
{
	struct table_column named[N_COLUMNS];
	struct table *table =
		begin_table(named, torsh_operator_group_names[operators->group], is_hardware);
	char text[CPU_COUNTERS_TEXT_BYTES];

	for (size_t i = 0; i < n; i++) {
		const struct operator_total *total = &operators->items[i];
		const char *access = torsh_cpu_counters_access(&total->self_counts, text);
		const struct cpu_roofline roofline = torsh_cpu_roofline_of(total, limits);

		if (operators->group == OPERATORS_BY_STEP && total->name)
			torsh_table_cell(table, "step %" PRIu64, total->step);
		else
			torsh_table_cell(table, "%s",
					 total->name && *total->name ? total->name : "(none)");
		put_counts(table, &total->self_counts, &roofline);
		if (total->overload && *total->overload)
			torsh_table_note(table, ".%s", total->overload);
		if (total->inputs && *total->inputs)
			torsh_table_note(table, "%s", total->inputs);
		if (access)
			torsh_table_note(table, "%s", access);
		if (!isnan(roofline.peak_share))
			torsh_table_note(table, "%.3g %% of what a core can do in a cycle",
					 100 * roofline.peak_share);
	}
	putchar('\n');
	torsh_table_print(table, stdout);
}

static void print_threads(const struct prepass *prepass, bool is_hardware)
{
	struct table_column named[N_COLUMNS];
	struct table *table = begin_table(named, "thread, of the whole run", is_hardware);
	size_t n = 0;

	torsh_table_hide(table, COLUMN_ROOFLINE);
	torsh_table_hide(table, COLUMN_ROOFLINE + 1);
	for (size_t i = 0; i < prepass->n; i++) {
		const struct recorded_process *process = prepass->items[i].process;
		const struct cpu_counts *counts;

		for (size_t k = 0;
		     (counts = torsh_sparse_array_next(&prepass->items[i].counts.threads, &k));
		     k++) {
			if (!counts->n || n++ >= THREADS_SHOWN)
				continue;
			torsh_table_cell(table, "%s (%" PRIu32 ")",
					 process->threads[k].name ? process->threads[k].name : "?",
					 process->threads[k].tid);
			put_counts(table, counts, NULL);
		}
	}
	putchar('\n');
	torsh_table_print(table, stdout);
	torsh_text_more(stdout, n > THREADS_SHOWN ? n - THREADS_SHOWN : 0);
}

static void print_traffic(const struct traffic_report *traffic)
{
	char text[TRAFFIC_TEXT_BYTES];

	if (torsh_traffic_report_text(traffic, text))
		printf("memory: %s\n", text);
	if (*traffic->reason)
		printf("%s\n", traffic->reason);
}

void torsh_ops_counters(const struct operators *operators, size_t n, const struct prepass *prepass,
			const struct cpu_roofline_limits *limits,
			const struct traffic_report *traffic)
{
	char text[CPU_COUNTERS_TEXT_BYTES];
	const char *reason = torsh_cpu_counters_why(prepass, text);
	bool is_hardware = has_hardware(prepass), is_known = false;

	if (reason)
		printf("%s\n", reason);
	for (size_t i = 0; i < prepass->n; i++)
		is_known = is_known || prepass->items[i].counts.is_known;
	if (!is_known)
		return;
	print_traffic(traffic);
	if (is_hardware) {
		puts("misses are per 1,000 instructions in user space; all is without what is inside,");
		puts("but FLOPs per cycle, and GB/s: an estimate by misses of the last cache");
	}
	if (is_hardware && *limits->others_reason)
		printf("%s\n", limits->others_reason);
	if (n)
		print_operators(operators, n, is_hardware, limits);
	print_threads(prepass, is_hardware);
}
