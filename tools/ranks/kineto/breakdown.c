/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/kineto/breakdown.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

#define KERNEL_WAIT_US 30
#define N_BROKEN_DOWN 3u /* types: all but TYPE_OTHER */

/* A kernel as HTA has it. */
struct row {
	double start, end, launched; /* launched: NAN if unknown */
	int64_t stream;
	uint32_t index, name;
	uint32_t times; /* it is in HTA's table once for each event that launched it */
	bool is_work;
};

struct rows {
	struct row *items;
	size_t n;
};

/* ---- which kernels count --------------------------------------------------------------------- */

static double round_start(const struct kineto_trace *trace, double at_us)
{
	return trace->has_fractions ? ceil(at_us) : at_us;
}

static double round_end(const struct kineto_trace *trace, double at_us)
{
	return trace->has_fractions ? floor(at_us) : at_us;
}

/*
 * When a kernel was launched: by the last event with its correlation. Without one HTA takes the
 * trace's first event.
 */
static double launched_at(const struct kineto_trace *trace, const struct kineto_launch *launches,
			  size_t n, double limit)
{
	double at = NAN;

	if (n)
		at = round_start(trace, launches[n - 1].start_us);
	else if (trace->has_first_event)
		at = round_start(trace, trace->first_event_us);
	return at < limit ? at : NAN;
}

/*
 * Set what is known of the launch; returns whether the kernel counts. limit: INFINITY, or where the
 * last step began.
 */
static bool set_launch(struct row *row, const struct kineto_trace *trace,
		       const struct kineto_kernel *kernel, double limit)
{
	const struct kineto_launch *launches;
	size_t n;

	row->times = 1;
	row->launched = NAN;
	if (!kernel->is_launched)
		return row->start < limit;
	launches = torsh_kineto_launches(trace, kernel->correlation, &n);
	row->launched = launched_at(trace, launches, n, limit);
	if (isinf(limit))
		return true;
	row->times = 0;
	for (size_t i = 0; i < n; i++)
		row->times += round_start(trace, launches[i].start_us) < limit;
	return row->times > 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

static void choose_rows(struct rows *rows, const struct kineto_trace *trace, bool without_last_step)
{
	double limit = without_last_step ? round_start(trace, trace->last_step_us) : INFINITY;

	rows->items = torsh_need_items(NULL, 0, trace->n_kernels, sizeof(*rows->items));
	for (size_t i = 0; i < trace->n_kernels; i++) {
		const struct kineto_kernel *kernel = &trace->kernels[i];
		struct row *row = &rows->items[rows->n];

		row->start = round_start(trace, kernel->start_us);
		row->end = round_end(trace, kernel->start_us + kernel->dur_us);
		row->index = kernel->index;
		row->stream = kernel->stream;
		row->name = kernel->name;
		row->is_work = kernel->is_work;
		rows->n += set_launch(row, trace, kernel, limit);
	}
	qsort(rows->items, rows->n, sizeof(*rows->items), compare_rows);
}

/* ---- the rank's time ------------------------------------------------------------------------- */

static void add_time(struct breakdown *breakdown, const struct kineto_trace *trace,
		     const struct rows *rows)
{
	struct intervals all = {0}, types[N_BROKEN_DOWN] = {{0}};
	double both[4] = {0};

	for (size_t i = 0; i < rows->n; i++) {
		const struct row *row = &rows->items[i];
		enum kernel_type type = trace->names[row->name].type;

		torsh_intervals_add(&all, row->start, row->end);
		if (type < N_BROKEN_DOWN)
			torsh_intervals_add(&types[type], row->start, row->end);
	}
	breakdown->total_us = all.items[all.n - 1].end - all.items[0].start;
	breakdown->idle_us = breakdown->total_us - torsh_intervals_sum(&all);
	breakdown->compute_us = torsh_intervals_sum(&types[TYPE_COMPUTATION]);
	breakdown->communication_us = torsh_intervals_sum(&types[TYPE_COMMUNICATION]);
	torsh_intervals_overlap(types, 2, both);
	breakdown->overlapped_us = both[3];
	torsh_intervals_overlap(types, N_BROKEN_DOWN, breakdown->type_us);
	free(all.items);
	for (size_t i = 0; i < N_BROKEN_DOWN; i++)
		free(types[i].items);
}

/* ---- gaps of streams ------------------------------------------------------------------------- */

static struct breakdown_stream *stream_of(struct breakdown *breakdown, struct hash_map *index,
					  int64_t stream, bool *is_new)
{
	size_t i = torsh_hash_map_put(index, &stream, sizeof(stream), breakdown->n_streams)->value;

	*is_new = i == breakdown->n_streams;
	if (*is_new) {
		breakdown->streams =
			torsh_array_reserve(breakdown->streams, i, &breakdown->streams_room,
					    sizeof(*breakdown->streams));
		breakdown->streams[breakdown->n_streams++].stream = stream;
	}
	return &breakdown->streams[i];
}

static void add_gap(struct breakdown_stream *stream, const struct row *row, double last_end)
{
	double gap = row->start - last_end;
	enum idle_kind kind = row->launched > last_end ? IDLE_HOST_WAIT
			      : gap < KERNEL_WAIT_US   ? IDLE_KERNEL_WAIT
						       : IDLE_OTHER;

	stream->idle_us[kind] += gap;
}

static int compare_streams(const void *a, const void *b)
{
	const struct breakdown_stream *x = a, *y = b;

	return (x->stream > y->stream) - (x->stream < y->stream);
}

static void add_streams(struct breakdown *breakdown, const struct rows *rows)
{
	struct hash_map index = {0};
	double *last_ends = NULL;
	size_t room = 0;
	bool is_new;

	for (size_t i = 0; i < rows->n; i++) {
		const struct row *row = &rows->items[i];
		struct breakdown_stream *stream;
		double *last_end;

		if (!row->is_work)
			continue;
		stream = stream_of(breakdown, &index, row->stream, &is_new);
		last_ends = torsh_array_extend(last_ends, breakdown->n_streams, &room,
					       sizeof(*last_ends));
		last_end = &last_ends[stream - breakdown->streams];
		for (uint32_t k = 0; k < row->times; k++) {
			if (!is_new || k)
				add_gap(stream, row, *last_end);
			*last_end = row->end;
		}
	}
	free(last_ends);
	torsh_hash_map_free(&index);
	if (!breakdown->n_streams)
		return;
	qsort(breakdown->streams, breakdown->n_streams, sizeof(*breakdown->streams),
	      compare_streams);
}

/* ---- kernels by name ------------------------------------------------------------------------- */

/* Welford's sums, so that the deviation of many equal durations is exact. */
static void add_call(struct breakdown_kernel *kernel, double us)
{
	double before = kernel->calls ? kernel->sum_us / (double)kernel->calls : 0;

	if (!kernel->calls || us < kernel->min_us)
		kernel->min_us = us;
	if (!kernel->calls || us > kernel->max_us)
		kernel->max_us = us;
	kernel->calls++;
	kernel->sum_us += us;
	kernel->squares += (us - before) * (us - kernel->sum_us / (double)kernel->calls);
}

static int compare_kernels(const void *a, const void *b)
{
	const struct breakdown_kernel *x = a, *y = b;

	if (x->sum_us != y->sum_us)
		return x->sum_us > y->sum_us ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void add_kernels(struct breakdown *breakdown, const struct kineto_trace *trace,
			const struct rows *rows)
{
	struct breakdown_kernel *kernels =
		torsh_need_items(NULL, 0, trace->n_names, sizeof(*kernels));
	size_t n = 0;

	for (size_t i = 0; i < rows->n; i++) {
		const struct row *row = &rows->items[i];

		for (uint32_t k = 0; k < row->times; k++)
			add_call(&kernels[row->name], row->end - row->start);
	}
	for (size_t i = 0; i < trace->n_names; i++) {
		if (!kernels[i].calls || trace->names[i].type == TYPE_OTHER)
			continue;
		kernels[n] = kernels[i];
		kernels[n].type = trace->names[i].type;
		kernels[n++].name = torsh_need(strdup(trace->names[i].text));
	}
	qsort(kernels, n, sizeof(*kernels), compare_kernels);
	breakdown->kernels = kernels;
	breakdown->n_names = n;
}

static void make(struct breakdown *breakdown, const struct kineto_trace *trace,
		 bool without_last_step)
{
	struct rows rows = {0};

	*breakdown = (struct breakdown){.is_without_last_step = without_last_step,
					.is_rounded = trace->has_fractions};
	choose_rows(&rows, trace, without_last_step);
	breakdown->n_kernels = rows.n;
	breakdown->has_kernels = rows.n > 0;
	if (rows.n) {
		add_time(breakdown, trace, &rows);
		add_streams(breakdown, &rows);
		add_kernels(breakdown, trace, &rows);
	}
	free(rows.items);
}

/* HTA's own checks of its sums. */
static bool is_contradictory(const struct breakdown *of)
{
	return of->idle_us > of->total_us || of->compute_us > of->total_us ||
	       of->total_us - of->compute_us - of->idle_us < 0;
}

void torsh_breakdown_make(struct breakdown *breakdown, const struct kineto_trace *trace,
			  bool without_last_step)
{
	struct kineto_trace exact = *trace;

	make(breakdown, trace, without_last_step);
	if (!trace->has_fractions || !is_contradictory(breakdown))
		return;
	torsh_breakdown_free(breakdown);
	exact.has_fractions = false;
	make(breakdown, &exact, without_last_step);
}

void torsh_breakdown_free(struct breakdown *breakdown)
{
	for (size_t i = 0; i < breakdown->n_names; i++)
		free((char *)breakdown->kernels[i].name);
	free(breakdown->kernels);
	free(breakdown->streams);
	*breakdown = (struct breakdown){0};
}
