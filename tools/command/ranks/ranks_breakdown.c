/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The breakdown of traces as text and as JSON. */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <stdlib.h>

#include "tools/base/size.h"
#include "tools/command/ranks/ranks_view.h"
#include "tools/report/text.h"
#include "tools/terminal/table.h"

#define N(array) (sizeof(array) / sizeof(*(array)))
#define LEAST_SHOWN_IMBALANCE 0.005

const char *const torsh_kernel_type_names[] = {
	[TYPE_COMPUTATION] = "computation",
	[TYPE_COMMUNICATION] = "communication",
	[TYPE_MEMORY] = "memory",
	[TYPE_OTHER] = "other",
};
const char *const torsh_idle_kind_names[] = {
	[IDLE_HOST_WAIT] = "host_wait",
	[IDLE_KERNEL_WAIT] = "kernel_wait",
	[IDLE_OTHER] = "other",
};

const struct breakdown_part torsh_breakdown_parts[] = {
	{"total", offsetof(struct breakdown, total_us)},
	{"compute", offsetof(struct breakdown, compute_us)},
	{"communication", offsetof(struct breakdown, communication_us)},
	{"idle", offsetof(struct breakdown, idle_us)},
};
const size_t torsh_breakdown_n_parts = N(torsh_breakdown_parts);

double torsh_ranks_breakdown_imbalance(const struct kineto_ranks *traces, size_t offset)
{
	double sum = 0, most = 0;

	for (size_t i = 0; i < traces->n; i++) {
		double us;

		memcpy(&us, (const char *)&traces->items[i].breakdown + offset, sizeof(us));

		sum += us;
		most = us > most ? us : most;
	}
	return most > 0 ? (most - sum / (double)traces->n) / most : -1;
}

static double percent_of(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : NAN;
}

static double non_compute(const struct breakdown *breakdown)
{
	return breakdown->total_us - breakdown->compute_us - breakdown->idle_us;
}

/* Sum up the types of all ranks. Returns the sum of sums. */
static double sum_types(const struct kineto_ranks *traces, double sums[BREAKDOWN_TYPES])
{
	double all = 0;

	for (size_t k = 0; k < BREAKDOWN_TYPES; k++) {
		sums[k] = 0;
		for (size_t i = 0; i < traces->n; i++)
			sums[k] += traces->items[i].breakdown.type_us[k];
		all += sums[k];
	}
	return all;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_us(struct json_writer *json, const char *name, double us)
{
	torsh_json_put_i64(json, name, llround(us * 1000));
}

static void put_types(struct json_writer *json, const char *name, const double types[],
		      double whole)
{
	torsh_json_begin_array(json, name);
	for (unsigned k = 1; k < BREAKDOWN_TYPES; k++) {
		if (types[k] == 0)
			continue;
		torsh_json_begin_object(json, NULL);
		torsh_json_begin_array(json, "types");
		for (unsigned type = 0; type < TYPE_OTHER; type++) {
			if (k & 1u << type)
				torsh_json_put_text(json, NULL, torsh_kernel_type_names[type]);
		}
		torsh_json_end_array(json);
		put_us(json, "ns", types[k]);
		torsh_json_put_double(json, "percent", percent_of(types[k], whole));
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void put_streams(struct json_writer *json, const struct breakdown *breakdown)
{
	torsh_json_begin_array(json, "streams");
	for (size_t i = 0; i < breakdown->n_streams; i++) {
		const struct breakdown_stream *stream = &breakdown->streams[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_i64(json, "stream", stream->stream);
		put_us(json, "host_wait_ns", stream->idle_us[IDLE_HOST_WAIT]);
		put_us(json, "kernel_wait_ns", stream->idle_us[IDLE_KERNEL_WAIT]);
		put_us(json, "other_ns", stream->idle_us[IDLE_OTHER]);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void put_kernels(struct json_writer *json, const struct breakdown *breakdown, size_t n)
{
	torsh_json_begin_lines(json, "kernels");
	for (size_t i = 0; i < n; i++) {
		const struct breakdown_kernel *kernel = &breakdown->kernels[i];
		double calls = (double)kernel->calls;

		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "name", kernel->name);
		torsh_json_put_text(json, "type", torsh_kernel_type_names[kernel->type]);
		torsh_json_put_u64(json, "calls", kernel->calls);
		put_us(json, "total_ns", kernel->sum_us);
		put_us(json, "min_ns", kernel->min_us);
		put_us(json, "max_ns", kernel->max_us);
		torsh_json_put_double(json, "mean_ns", kernel->sum_us * 1000 / calls);
		torsh_json_put_double(json, "deviation_ns",
				      kernel->calls > 1 ? sqrt(kernel->squares / (calls - 1)) * 1000
							: 0);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_json_put_u64(json, "omitted_kernels", breakdown->n_names - n);
}

static void put_rank(struct json_writer *json, const struct ranks_view *view,
		     const struct kineto_rank *rank)
{
	const struct breakdown *of = &rank->breakdown;
	double whole = 0;

	for (size_t k = 1; k < BREAKDOWN_TYPES; k++)
		whole += of->type_us[k];
	torsh_json_begin_object(json, NULL);
	torsh_json_put_u64(json, "rank", rank->rank);
	torsh_json_put_text(json, "path", rank->path);
	torsh_json_put_u64(json, "events", rank->n_events);
	torsh_json_put_u64(json, "device_events", of->n_kernels);
	torsh_json_put_bool(json, "without_last_step", of->is_without_last_step);
	torsh_json_put_bool(json, "rounded", of->is_rounded);
	put_us(json, "total_ns", of->total_us);
	put_us(json, "idle_ns", of->idle_us);
	put_us(json, "compute_ns", of->compute_us);
	put_us(json, "non_compute_ns", non_compute(of));
	put_us(json, "communication_ns", of->communication_us);
	put_us(json, "overlapped_ns", of->overlapped_us);
	torsh_json_put_double(json, "idle_percent", percent_of(of->idle_us, of->total_us));
	torsh_json_put_double(json, "compute_percent", percent_of(of->compute_us, of->total_us));
	torsh_json_put_double(json, "non_compute_percent",
			      percent_of(non_compute(of), of->total_us));
	torsh_json_put_double(json, "overlap_percent",
			      percent_of(of->overlapped_us, of->communication_us));
	put_types(json, "kernel_types", of->type_us, whole);
	put_streams(json, of);
	put_kernels(json, of, torsh_ranks_shown(view, of->n_names));
	torsh_json_end_object(json);
}

void torsh_ranks_breakdown_json(struct json_writer *json, const struct ranks_view *view)
{
	const struct kineto_ranks *traces = view->traces;
	double sums[BREAKDOWN_TYPES], whole = sum_types(traces, sums);
	size_t n = torsh_ranks_shown(view, traces->n);

	torsh_json_begin_object(json, "breakdown");
	torsh_json_begin_lines(json, "ranks");
	for (size_t i = 0; i < n; i++)
		put_rank(json, view, &traces->items[i]);
	torsh_json_end_array(json);
	put_types(json, "kernel_types", sums, whole);
	torsh_json_begin_array(json, "imbalance");
	for (size_t i = 0; i < torsh_breakdown_n_parts; i++) {
		double ratio =
			torsh_ranks_breakdown_imbalance(traces, torsh_breakdown_parts[i].offset);

		if (ratio < 0)
			continue;
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "part", torsh_breakdown_parts[i].name);
		torsh_json_put_double(json, "ratio", ratio);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

/* ---- text ------------------------------------------------------------------------------------ */

static const struct table_column rank_columns[] = {
	{"rank", TABLE_NUMBER, .drop = 0},	  {"time", TABLE_NUMBER, .drop = 0},
	{"idle", TABLE_NUMBER, .drop = 0},	  {"compute", TABLE_NUMBER, .drop = 0},
	{"non-compute", TABLE_NUMBER, .drop = 2}, {"communication", TABLE_NUMBER, .drop = 1},
	{"overlapped", TABLE_NUMBER, .drop = 0},  {"host wait", TABLE_NUMBER, .drop = 3},
	{"kernel wait", TABLE_NUMBER, .drop = 4}, {"other", TABLE_NUMBER, .drop = 5},
};

static void put_percent(struct table *table, double part, double whole)
{
	if (whole > 0)
		torsh_table_cell(table, "%.2f%%", 100 * part / whole);
	else
		torsh_table_unknown(table);
}

static void print_ranks(const struct ranks_view *view)
{
	const struct kineto_ranks *traces = view->traces;
	size_t n = torsh_ranks_shown(view, traces->n);
	struct table *table = torsh_table_create(rank_columns, N(rank_columns));
	bool is_cut = false;

	torsh_text_heading(stdout,
			   "Time of each rank's device, as HolisticTraceAnalysis counts it");
	for (size_t i = 0; i < n; i++) {
		const struct breakdown *of = &traces->items[i].breakdown;
		double idle[N_IDLE_KINDS] = {0}, all = 0;

		for (size_t k = 0; k < of->n_streams; k++) {
			for (size_t kind = 0; kind < N_IDLE_KINDS; kind++) {
				idle[kind] += of->streams[k].idle_us[kind];
				all += of->streams[k].idle_us[kind];
			}
		}
		is_cut = is_cut || of->is_without_last_step;
		torsh_table_cell(table, "%" PRIu32, traces->items[i].rank);
		torsh_table_time(table, (uint64_t)(of->total_us * 1000));
		put_percent(table, of->idle_us, of->total_us);
		put_percent(table, of->compute_us, of->total_us);
		put_percent(table, non_compute(of), of->total_us);
		put_percent(table, of->communication_us, of->total_us);
		put_percent(table, of->overlapped_us, of->communication_us);
		for (size_t kind = 0; kind < N_IDLE_KINDS; kind++)
			put_percent(table, idle[kind], all);
	}
	torsh_table_print(table, stdout);
	torsh_text_more(stdout, traces->n - n);
	puts("overlapped: of the communication, while something was computed; host wait, kernel wait, other: of the streams' gaps");
	if (is_cut)
		puts("without what was launched in the last profiler step, which is not whole");
}

static void print_types(const struct kineto_ranks *traces)
{
	double sums[BREAKDOWN_TYPES], whole = sum_types(traces, sums);
	const char *before = "\nKernels of all ranks: ";

	for (unsigned k = 1; k < BREAKDOWN_TYPES; k++) {
		const char *overlapping = "";

		if (sums[k] <= 0)
			continue;
		fputs(before, stdout);
		for (unsigned type = 0; type < TYPE_OTHER; type++) {
			if (!(k & 1u << type))
				continue;
			printf("%s%s", overlapping, torsh_kernel_type_names[type]);
			overlapping = " overlapping ";
		}
		printf(" %.1f%%", 100 * sums[k] / whole);
		before = ", ";
	}
	if (before[0] == ',')
		putchar('\n');
}

static void print_imbalance(const struct kineto_ranks *traces)
{
	const char *before = "Load imbalance, (most - mean) / most: ";

	for (size_t i = 0; i < torsh_breakdown_n_parts; i++) {
		double ratio =
			torsh_ranks_breakdown_imbalance(traces, torsh_breakdown_parts[i].offset);
		char text[SIZE_TEXT_BYTES];

		if (ratio < LEAST_SHOWN_IMBALANCE)
			continue;
		printf("%s%s %s", before, torsh_breakdown_parts[i].name,
		       torsh_size_percent(ratio, 1, text));
		before = ", ";
	}
	if (before[0] == ',')
		putchar('\n');
}

void torsh_ranks_breakdown_text(const struct ranks_view *view)
{
	print_ranks(view);
	print_types(view->traces);
	print_imbalance(view->traces);
}
