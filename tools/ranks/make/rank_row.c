/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/make/rank_row.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/ranks/make/fold_make.h"
#include "tools/ranks/make/lead.h"
#include "tools/ranks/make/rank_clocks.h"
#include "tools/ranks/make/rank_samples.h"

/* ---- collectives ----------------------------------------------------------------------------- */

static void add_collectives(struct rank_samples *samples, const struct recorded_process *process,
			    const struct process_pass *pass)
{
	const struct rank_collectives *all = &pass->collectives;
	struct lead_cursor cursor = {0};
	uint64_t leads[N_FOLD_LEADS];

	torsh_rank_samples_begin(samples, all, pass->n_samples);
	for (size_t i = 0; i < all->n; i++) {
		size_t step = torsh_steps_at(pass->steps, all->items[i].issued_ns);
		const struct rank_cpu cpu = torsh_rank_cpu(
			process, all->items[i ? i - 1 : i].issued_ns, all->items[i].issued_ns);

		torsh_lead_of(&cursor, pass, i, leads);
		torsh_rank_samples_add(samples, &all->items[i],
				       step == STEP_NONE ? RANK_SAMPLES_NO_STEP : step,
				       torsh_lead_exposed(&cursor, pass, i), leads, &cpu);
	}
	torsh_rank_samples_end(samples);
	torsh_lead_end(&cursor);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void max_of(uint64_t *value, uint64_t other)
{
	if (other > *value)
		*value = other;
}

static void add_step(Torsh__FoldRank *row, struct process_pass *pass, size_t step, size_t next[2])
{
	static const int phases[N_FOLD_PHASES] = {
#define PHASE(name, of) [FOLD_PHASE_##name] = 1 + PHASE_##of,
#define PHASE_NONE (-1)
#include "tools/ranks/fold/fold_phases.def"
#undef PHASE_NONE
#undef PHASE
	};
	const struct step *of = &pass->steps->items[step];
	size_t n = row->n_phases / N_FOLD_PHASES, bucket = step >> row->shift;
	uint64_t *values = row->phases + bucket, gc;

	for (size_t i = 0; i < N_FOLD_PHASES; i++) {
		if (phases[i])
			values[i * n] += pass->spent[step].phase_ns[phases[i] - 1];
	}
	values[FOLD_PHASE_steps * n]++;
	values[FOLD_PHASE_wall_ns * n] += of->end_ns - of->start_ns;
	values[FOLD_PHASE_other_ns * n] += pass->spent[step].other_ns;
	gc = torsh_busy_within(&pass->gc, of->start_ns, of->end_ns, &next[0]);
	values[FOLD_PHASE_gc_ns * n] += gc;
	values[FOLD_PHASE_compute_ns * n] +=
		torsh_busy_within(&pass->compute, of->start_ns, of->end_ns, &next[1]) - gc;
	max_of(&values[FOLD_PHASE_tensor_peak_bytes * n], pass->tensor_peaks[step]);
	row->totals[FOLD_TOTAL_stepped_ns] += of->end_ns - of->start_ns;
}

static void add_heap(Torsh__FoldRank *row, const struct recorded_process *process,
		     const struct steps *steps)
{
	size_t n = row->n_phases / N_FOLD_PHASES;

	for (size_t i = 0; n && i < process->n_moments; i++) {
		const struct recorded_moment *moment = &process->moments[i];
		size_t step = torsh_steps_after(steps->items, steps->n, moment->at_ns);

		if (moment->kind != RECORDED_MOMENT_BY_STEP || step == steps->n)
			continue;
		max_of(&row->phases[FOLD_PHASE_heap_bytes * n + (step >> row->shift)],
		       moment->bytes);
	}
}

static void add_steps(Torsh__FoldRank *row, const struct recorded_process *process,
		      struct process_pass *pass)
{
	const struct steps *steps = pass->steps;
	size_t next[2] = {0};

	row->has_n_steps = row->has_shift = true;
	row->n_steps = (uint32_t)steps->n;
	row->step_rule = torsh_need(strdup(torsh_step_rule_names[steps->rule]));
	if (!steps->n)
		return;
	while ((steps->n - 1) >> row->shift >= FOLD_STEP_BUCKETS)
		row->shift++;
	row->n_phases = (((steps->n - 1) >> row->shift) + 1) * N_FOLD_PHASES;
	row->phases = torsh_need_items(NULL, 0, row->n_phases, sizeof(*row->phases));
	for (size_t i = 0; i < steps->n; i++)
		add_step(row, pass, i, next);
	add_heap(row, process, steps);
}

/* ---- totals ---------------------------------------------------------------------------------- */

static void put_total(Torsh__FoldRank *row, enum fold_total total, bool is_known, uint64_t value)
{
	row->totals[total] = is_known ? value + 1 : 0;
}

/* Those of collectives and steps are summed up already, from 0 on. */
static void add_totals(Torsh__FoldRank *row, const struct recorded_process *process,
		       const struct process_pass *pass, bool has_operators)
{
	const struct recorded_heap *heap = &process->heap;
	const struct recorded_usage *usage = &process->usage;
	const struct pass_sums *sums = &pass->sums;

	row->totals[FOLD_TOTAL_communication_ns]++;
	row->totals[FOLD_TOTAL_exposed_ns]++;
	put_total(row, FOLD_TOTAL_stepped_ns, row->n_steps, row->totals[FOLD_TOTAL_stepped_ns]);
	put_total(row, FOLD_TOTAL_gc_ns, process->tables->has_python, sums->gc_ns);
	put_total(row, FOLD_TOTAL_gc_runs, process->tables->has_python, sums->gc_runs);
	put_total(row, FOLD_TOTAL_operators, has_operators, sums->operators);
	put_total(row, FOLD_TOTAL_allocs, heap->is_there, heap->allocs);
	put_total(row, FOLD_TOTAL_alloc_bytes, heap->is_there, heap->alloc_bytes);
	put_total(row, FOLD_TOTAL_heap_peak_bytes, heap->is_there, heap->peak_bytes);
	put_total(row, FOLD_TOTAL_minor_faults, usage->is_there, usage->minor_faults);
	put_total(row, FOLD_TOTAL_major_faults, usage->is_there, usage->major_faults);
	put_total(row, FOLD_TOTAL_oversubscribed_ns, usage->is_there, usage->oversubscribed_ns);
	put_total(row, FOLD_TOTAL_cpu_wait_ns, usage->has_cpu_wait, usage->cpu_wait_ns);
	put_total(row, FOLD_TOTAL_cpu_throttled_ns, usage->has_throttling, usage->cpu_throttled_ns);
	put_total(row, FOLD_TOTAL_cpu_throttled_periods, usage->has_throttling,
		  usage->cpu_throttled_periods);
	put_total(row, FOLD_TOTAL_cpu_periods, usage->has_throttling, usage->cpu_periods);
	put_total(row, FOLD_TOTAL_cpu_stolen_ns, usage->has_cpu_stolen, usage->cpu_stolen_ns);
	put_total(row, FOLD_TOTAL_rss_peak_bytes, process->has_rss_peak, process->rss_peak_bytes);
	put_total(row, FOLD_TOTAL_tensor_peak_bytes, sums->tensor_peak_bytes > 0,
		  sums->tensor_peak_bytes);
	put_total(row, FOLD_TOTAL_device_used_bytes, sums->device_capacity_bytes > 0,
		  sums->device_used_bytes);
	put_total(row, FOLD_TOTAL_device_capacity_bytes, sums->device_capacity_bytes > 0,
		  sums->device_capacity_bytes);
}

/* ---- paths ----------------------------------------------------------------------------------- */

struct path_time {
	uint64_t hash, ns, calls;
	uint32_t node;
};

static int compare_times(const void *a, const void *b)
{
	const struct path_time *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x->hash > y->hash) - (x->hash < y->hash);
}

static int compare_values(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Set for each path its time in the median of n buckets: a stall in a few of them doesn't show. */
static void add_step_times(Torsh__FoldRank *row, const struct fold *fold,
			   const struct path_time *times, size_t n)
{
	const struct fold_table *spans = &fold->tables[FOLD_SPANS];
	uint32_t *place = torsh_need_items(NULL, 0, fold->n_nodes, sizeof(*place));
	uint64_t *of_steps = torsh_need_items(NULL, 0, row->n_path * n, sizeof(*of_steps));

	for (size_t i = 0; i < row->n_path; i++)
		place[times[i].node] = (uint32_t)i + 1;
	for (size_t i = 0; i < spans->n; i++) {
		const struct fold_row *of = &spans->rows[i];

		if (place[of->node] && of->sub && of->sub <= n)
			of_steps[(place[of->node] - 1) * n + of->sub - 1] +=
				of->values[FOLD_SPANS_self_ns];
	}
	for (size_t i = 0; i < row->n_path && n; i++) {
		qsort(of_steps + i * n, n, sizeof(*of_steps), compare_values);
		row->path_step_ns[i] = of_steps[i * n + (n - 1) / 2];
	}
	free(of_steps);
	free(place);
}

/* The fold has the spans of this process only. */
static void add_paths(Torsh__FoldRank *row, const struct fold *fold)
{
	const struct fold_table *spans = &fold->tables[FOLD_SPANS];
	struct path_time *times = torsh_need_items(NULL, 0, fold->n_nodes, sizeof(*times));
	size_t n;

	for (size_t i = 0; i < fold->n_nodes; i++) {
		times[i].hash = fold->nodes[i].hash;
		times[i].node = (uint32_t)i;
	}
	for (size_t i = 0; i < spans->n; i++) {
		const struct fold_row *of = &spans->rows[i];

		times[of->node].ns += of->values[FOLD_SPANS_self_ns];
		times[of->node].calls += of->values[FOLD_SPANS_count];
	}
	qsort(times, fold->n_nodes, sizeof(*times), compare_times);
	for (n = 0; n < fold->n_nodes && n < FOLD_PATHS && times[n].ns; n++)
		;
	row->n_path = row->n_path_ns = row->n_path_calls = row->n_path_step_ns = n;
	row->path = torsh_need_items(NULL, 0, n, sizeof(*row->path));
	row->path_ns = torsh_need_items(NULL, 0, n, sizeof(*row->path_ns));
	row->path_calls = torsh_need_items(NULL, 0, n, sizeof(*row->path_calls));
	row->path_step_ns = torsh_need_items(NULL, 0, n, sizeof(*row->path_step_ns));
	for (size_t i = 0; i < n; i++) {
		row->path[i] = times[i].hash;
		row->path_ns[i] = times[i].ns;
		row->path_calls[i] = times[i].calls;
	}
	add_step_times(row, fold, times, row->n_phases / N_FOLD_PHASES);
	free(times);
}

/* ---- the row --------------------------------------------------------------------------------- */

/* Returns the name of the device with most activities; NULL: there were none. */
static const char *find_device(const struct recorded_process *process,
			       const struct prepass_process *prepass, const struct pass_sums *sums)
{
	const struct event_device *device;
	uint32_t most = 0;

	for (uint32_t i = 1; i < PASS_DEVICES_MAX; i++) {
		if (sums->activities[i] > sums->activities[most])
			most = i;
	}
	device = sums->activities[most] ? torsh_device_list_find(&prepass->devices, most) : NULL;
	return device ? torsh_timeline_label(process, device->name) : NULL;
}

static void identify(Torsh__FoldRank *row, const struct recording *recording,
		     const struct recorded_process *process, const struct prepass_process *prepass)
{
	uint64_t last_ns = prepass->last_ns > process->end_ns ? prepass->last_ns : process->end_ns;

	row->has_rank = torsh_recording_rank(process->rank, &row->rank);
	row->host = torsh_need(strdup(recording->host ? recording->host : ""));
	row->program = torsh_need(strdup(process->program ? process->program : ""));
	row->has_pid = row->has_clock = row->has_start_ns = row->has_duration_ns = true;
	row->pid = process->pid;
	row->clock = recording->start_realtime_ns;
	row->start_ns = recording->start_realtime_ns + process->start_ns;
	row->duration_ns = last_ns > process->start_ns ? last_ns - process->start_ns : 0;
}

Torsh__FoldRank *torsh_rank_row(struct fold *fold, const struct recording *recording,
				const struct recorded_process *process,
				const struct prepass_process *prepass, struct process_pass *pass)
{
	Torsh__FoldRank *row = torsh_need(malloc(sizeof(*row)));
	struct rank_samples samples = {
		.row = row, .fold = fold, .last_issued_ns = process->start_ns};
	const char *device;

	torsh__fold_rank__init(row);
	row->n_totals = N_FOLD_TOTALS;
	row->totals = torsh_need_items(NULL, 0, N_FOLD_TOTALS, sizeof(*row->totals));
	identify(row, recording, process, prepass);
	device = find_device(process, prepass, &pass->sums);
	row->device = device ? torsh_need(strdup(device)) : NULL;
	torsh_rank_clocks(row, recording);
	add_steps(row, process, pass);
	add_paths(row, fold);
	add_collectives(&samples, process, pass);
	add_totals(row, process, pass, prepass->n_operators > 0);
	return row;
}

void torsh_rank_row_free(Torsh__FoldRank *row)
{
	if (row)
		torsh__fold_rank__free_unpacked(row, NULL);
}
