/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/kineto/kineto_fold.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/ranks/kineto/breakdown.h"
#include "tools/ranks/make/fold_make.h"
#include "tools/ranks/make/rank_samples.h"

struct making {
	const struct kineto_trace *trace;
	struct fold *fold;
	Torsh__FoldRank *row;
	struct intervals compute;
	struct kineto_step *steps; /* by start */
	struct rank_collectives collectives;
};

static uint64_t to_ns(const struct kineto_trace *trace, double at_us)
{
	return at_us > trace->first_us ? (uint64_t)((at_us - trace->first_us) * 1000 + 0.5) : 0;
}

static double to_us(const struct kineto_trace *trace, uint64_t ns)
{
	return trace->first_us + (double)ns / 1000;
}

/* ---- what was computed ----------------------------------------------------------------------- */

static int compare_intervals(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static void find_compute(struct making *making)
{
	const struct kineto_trace *trace = making->trace;
	struct interval *all = torsh_need_items(NULL, 0, trace->n_kernels, sizeof(*all));
	size_t n = 0;

	for (size_t i = 0; i < trace->n_kernels; i++) {
		const struct kineto_kernel *kernel = &trace->kernels[i];

		if (kernel->is_work && trace->names[kernel->name].type == TYPE_COMPUTATION)
			all[n++] = (struct interval){kernel->start_us,
						     kernel->start_us + kernel->dur_us};
	}
	qsort(all, n, sizeof(*all), compare_intervals);
	for (size_t i = 0; i < n; i++)
		torsh_intervals_add(&making->compute, all[i].start, all[i].end);
	free(all);
}

/* ---- collectives ----------------------------------------------------------------------------- */

static int compare_collectives(const void *a, const void *b)
{
	const struct kineto_collective *x = a, *y = b;

	if (x->start_us != y->start_us)
		return x->start_us < y->start_us ? -1 : 1;
	return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

/* Returns whether PyTorch's numbers can be keys: all have one, and they ascend in each group. */
static bool has_sequences(const struct kineto_collective *all, size_t n)
{
	struct hash_map last = {0};
	bool is_ascending = true;

	for (size_t i = 0; i < n && is_ascending; i++) {
		size_t n_group = strlen(all[i].group) + 1, before = 0;

		torsh_hash_map_remove(&last, all[i].group, n_group, &before);
		torsh_hash_map_put(&last, all[i].group, n_group, all[i].sequence);
		is_ascending = all[i].sequence > before;
	}
	torsh_hash_map_free(&last);
	return is_ascending;
}

static void collect(struct making *making)
{
	const struct kineto_trace *trace = making->trace;
	size_t n = trace->n_collectives, n_launches;
	struct kineto_collective *all = torsh_need_items(NULL, 0, n, sizeof(*all));
	bool is_numbered;

	if (n)
		memcpy(all, trace->collectives, n * sizeof(*all));
	qsort(all, n, sizeof(*all), compare_collectives);
	is_numbered = has_sequences(all, n);
	for (size_t i = 0; i < n; i++) {
		const struct kineto_launch *launch =
			torsh_kineto_launches(trace, all[i].correlation, &n_launches);
		bool is_earlier = launch && launch->start_us < all[i].start_us;
		const struct rank_collective one = {
			.name = all[i].name,
			.group = all[i].group,
			.bytes = all[i].bytes,
			.group_size = all[i].group_size,
			.flags = FOLD_SAMPLE_ENDS | FOLD_SAMPLE_ON_DEVICE |
				 (torsh_collective_joins(all[i].name) ? FOLD_SAMPLE_JOINS : 0),
			.issued_ns = to_ns(trace, is_earlier ? launch->start_us : all[i].start_us),
			.entered_ns = to_ns(trace, all[i].start_us),
			.end_ns = to_ns(trace, all[i].start_us + all[i].dur_us),
		};
		size_t at = torsh_rank_collectives_add(&making->collectives, &one);

		if (is_numbered)
			making->collectives.items[at].sequence = all[i].sequence - 1;
	}
	free(all);
}

/* Returns the index of the step in which something was issued; RANK_SAMPLES_NO_STEP: in none. */
static size_t step_at(const struct making *making, uint64_t at_ns)
{
	double at = to_us(making->trace, at_ns);
	size_t n = making->trace->n_steps, low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (making->steps[middle].start_us <= at)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || at >= making->steps[low - 1].start_us + making->steps[low - 1].dur_us)
		return RANK_SAMPLES_NO_STEP;
	return low - 1;
}

/* What the host did between two of them is not looked at. */
static void add_collectives(struct making *making)
{
	const struct rank_collectives *all = &making->collectives;
	const struct kineto_trace *trace = making->trace;
	struct rank_samples samples = {.row = making->row, .fold = making->fold};
	size_t next = 0;

	torsh_rank_samples_begin(&samples, all, FOLD_SAMPLES);
	for (size_t i = 0; i < all->n; i++) {
		const struct rank_collective *of = &all->items[i];
		uint64_t ns = of->end_ns - of->entered_ns;
		double computed =
			torsh_intervals_within(&making->compute, to_us(trace, of->entered_ns),
					       to_us(trace, of->end_ns), &next);
		uint64_t covered = (uint64_t)(computed * 1000 + 0.5);

		torsh_rank_samples_add(&samples, of, step_at(making, of->issued_ns),
				       covered < ns ? ns - covered : 0, NULL, NULL);
	}
	torsh_rank_samples_end(&samples);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static int compare_steps(const void *a, const void *b)
{
	const struct kineto_step *x = a, *y = b;

	return (x->start_us > y->start_us) - (x->start_us < y->start_us);
}

static void add_steps(struct making *making)
{
	const struct kineto_trace *trace = making->trace;
	Torsh__FoldRank *row = making->row;
	size_t n_buckets, next = 0;

	making->steps = torsh_need_items(NULL, 0, trace->n_steps, sizeof(*making->steps));
	if (trace->n_steps)
		memcpy(making->steps, trace->steps, trace->n_steps * sizeof(*making->steps));
	qsort(making->steps, trace->n_steps, sizeof(*making->steps), compare_steps);
	row->has_n_steps = row->has_shift = true;
	row->n_steps = (uint32_t)trace->n_steps;
	row->step_rule = torsh_need(strdup("profiler"));
	if (!trace->n_steps)
		return;
	while ((trace->n_steps - 1) >> row->shift >= FOLD_STEP_BUCKETS)
		row->shift++;
	n_buckets = ((trace->n_steps - 1) >> row->shift) + 1;
	row->n_phases = n_buckets * N_FOLD_PHASES;
	row->phases = torsh_need_items(NULL, 0, row->n_phases, sizeof(*row->phases));
	for (size_t i = 0; i < trace->n_steps; i++) {
		const struct kineto_step *step = &making->steps[i];
		uint64_t *values = row->phases + (i >> row->shift);
		uint64_t ns = step->dur_us > 0 ? (uint64_t)(step->dur_us * 1000 + 0.5) : 0;

		values[FOLD_PHASE_steps * n_buckets]++;
		values[FOLD_PHASE_wall_ns * n_buckets] += ns;
		values[FOLD_PHASE_compute_ns * n_buckets] +=
			(uint64_t)(torsh_intervals_within(&making->compute, step->start_us,
							  step->start_us + step->dur_us, &next) *
				   1000);
		row->totals[FOLD_TOTAL_stepped_ns] += ns;
	}
}

/* ---- the row --------------------------------------------------------------------------------- */

static void identify(Torsh__FoldRank *row, const struct kineto_trace *trace)
{
	const char *file = strrchr(trace->path, '/');

	row->has_rank = true;
	row->rank = trace->rank;
	row->host = torsh_need(strdup(file ? file + 1 : trace->path));
	row->program = torsh_need(strdup(""));
	row->has_world_size = trace->world_size > 0;
	row->world_size = trace->world_size;
	row->has_pid = row->has_clock = row->has_start_ns = row->has_duration_ns = true;
	if (trace->last_us < trace->first_us)
		return;
	row->start_ns = trace->base_ns;
	if (trace->first_us > 0 && trace->first_us < 9e15)
		row->start_ns += (uint64_t)(trace->first_us * 1000);
	row->clock = row->start_ns;
	row->duration_ns = to_ns(trace, trace->last_us);
}

Torsh__FoldRank *torsh_kineto_fold(struct fold *fold, const struct kineto_trace *trace)
{
	Torsh__FoldRank *row = torsh_need(malloc(sizeof(*row)));
	struct making making = {.trace = trace, .fold = fold, .row = row};

	torsh__fold_rank__init(row);
	row->n_totals = N_FOLD_TOTALS;
	row->totals = torsh_need_items(NULL, 0, N_FOLD_TOTALS, sizeof(*row->totals));
	identify(row, trace);
	find_compute(&making);
	collect(&making);
	add_steps(&making);
	while (fold->shift < row->shift)
		torsh_fold_widen(fold, row->shift);
	add_collectives(&making);
	row->totals[FOLD_TOTAL_communication_ns]++;
	row->totals[FOLD_TOTAL_exposed_ns]++;
	row->totals[FOLD_TOTAL_stepped_ns] += trace->n_steps > 0;
	free(making.compute.items);
	free(making.steps);
	torsh_rank_collectives_free(&making.collectives);
	return row;
}
