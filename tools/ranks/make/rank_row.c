/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/make/rank_row.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tools/base/die.h"
#include "tools/ranks/make/fold_make.h"
#include "tools/ranks/make/lead.h"
#include "tools/ranks/make/rank_clocks.h"

/* ---- which collectives are kept -------------------------------------------------------------- */

static uint64_t hash_block(const char *group, uint64_t sequence)
{
	uint64_t block = sequence >> FOLD_BLOCK_BITS;

	return XXH64(&block, sizeof(block), XXH64(group, strlen(group), 0));
}

bool torsh_rank_row_keeps(uint64_t threshold, const char *group, uint64_t sequence)
{
	return hash_block(group, sequence) <= threshold;
}

static int compare_hashes(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Ranks with as many collectives choose alike: the blocks with the lowest hashes. */
uint64_t torsh_rank_row_threshold(const struct rank_collectives *all, size_t n_samples)
{
	uint64_t *hashes, threshold;

	if (all->n <= n_samples)
		return UINT64_MAX;
	hashes = torsh_need_items(NULL, 0, all->n, sizeof(*hashes));
	for (size_t i = 0; i < all->n; i++)
		hashes[i] = hash_block(all->items[i].group, all->items[i].sequence);
	qsort(hashes, all->n, sizeof(*hashes), compare_hashes);
	threshold = hashes[n_samples] == hashes[0] ? hashes[0] : hashes[n_samples] - 1;
	free(hashes);
	return threshold;
}

/* ---- samples --------------------------------------------------------------------------------- */

struct sampling {
	Torsh__FoldRank *row;
	struct fold *fold;
	const struct process_pass *pass;
	struct hash_map texts;
	struct lead_cursor cursor;
	uint64_t origin_ns; /* issued_ns counts from here */
	uint64_t last_sequence, last_issued_ns;
	uint64_t *leads; /* by sample, then by lead */
};

static uint32_t put_text(struct sampling *sampling, const char *text)
{
	Torsh__FoldRank *row = sampling->row;
	size_t i = torsh_hash_map_put_text(&sampling->texts, text, row->n_texts)->value;

	if (i == row->n_texts) {
		row->texts = torsh_need_items(row->texts, i, i + 1, sizeof(*row->texts));
		row->texts[row->n_texts++] = torsh_need(strdup(text));
	}
	return (uint32_t)i;
}

static void add_sample(struct sampling *sampling, const struct rank_collective *of,
		       const uint64_t *leads)
{
	Torsh__FoldRank *row = sampling->row;
	const struct process_pass *pass = sampling->pass;
	size_t i = row->n_group++, step = torsh_steps_at(pass->steps, of->issued_ns);
	bool has_end = of->flags & FOLD_SAMPLE_ENDS && of->end_ns >= of->entered_ns;

	row->group[i] = put_text(sampling, of->group);
	row->name[i] = put_text(sampling, of->name);
	row->sequence_step[i] = (int64_t)(of->sequence - sampling->last_sequence);
	row->step[i] = step == STEP_NONE ? 0 : (uint32_t)step + 1;
	row->bytes[i] = of->bytes;
	row->issued_step[i] = (int64_t)(of->issued_ns - sampling->last_issued_ns);
	row->queued_ns[i] = of->entered_ns > of->issued_ns ? of->entered_ns - of->issued_ns : 0;
	row->length_ns[i] = has_end ? of->end_ns - of->entered_ns : 0;
	row->flags[i] = of->flags & ~(has_end ? 0u : FOLD_SAMPLE_ENDS);
	memcpy(&sampling->leads[i * N_FOLD_LEADS], leads, N_FOLD_LEADS * sizeof(*leads));
	sampling->last_sequence = of->sequence;
	sampling->last_issued_ns = of->issued_ns;
}

/* Reserve columns for n samples. */
static void reserve_samples(Torsh__FoldRank *row, size_t n)
{
	row->group = torsh_need_items(NULL, 0, n, sizeof(*row->group));
	row->name = torsh_need_items(NULL, 0, n, sizeof(*row->name));
	row->sequence_step = torsh_need_items(NULL, 0, n, sizeof(*row->sequence_step));
	row->step = torsh_need_items(NULL, 0, n, sizeof(*row->step));
	row->bytes = torsh_need_items(NULL, 0, n, sizeof(*row->bytes));
	row->issued_step = torsh_need_items(NULL, 0, n, sizeof(*row->issued_step));
	row->queued_ns = torsh_need_items(NULL, 0, n, sizeof(*row->queued_ns));
	row->length_ns = torsh_need_items(NULL, 0, n, sizeof(*row->length_ns));
	row->flags = torsh_need_items(NULL, 0, n, sizeof(*row->flags));
}

static void settle_samples(struct sampling *sampling)
{
	Torsh__FoldRank *row = sampling->row;
	size_t n = row->n_group;

	row->n_name = row->n_sequence_step = row->n_step = row->n_bytes = row->n_issued_step =
		row->n_queued_ns = row->n_length_ns = row->n_flags = n;
	row->n_leads = n * N_FOLD_LEADS;
	row->leads = torsh_need_items(NULL, 0, row->n_leads, sizeof(*row->leads));
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < N_FOLD_LEADS; k++)
			row->leads[k * n + i] = sampling->leads[i * N_FOLD_LEADS + k];
	}
	free(sampling->leads);
}

/* ---- sums of collectives --------------------------------------------------------------------- */

static uint32_t size_class(uint64_t bytes)
{
	return bytes ? 64u - (uint32_t)__builtin_clzll(bytes) : 0;
}

static void add_sums(struct sampling *sampling, const struct rank_collective *of,
		     uint64_t exposed_ns)
{
	Torsh__FoldRank *row = sampling->row;
	uint64_t ns = of->flags & FOLD_SAMPLE_ENDS && of->end_ns > of->entered_ns
			      ? of->end_ns - of->entered_ns
			      : 0;
	uint32_t node = torsh_fold_node(sampling->fold, 0,
					&(struct fold_key){.kind = FOLD_COLLECTIVE,
							   .function = of->name,
							   .file = of->group});
	const uint64_t values[N_FOLD_COLLECTIVES] = {
		[FOLD_COLLECTIVES_calls] = 1,
		[FOLD_COLLECTIVES_bytes] = of->bytes,
		[FOLD_COLLECTIVES_total_ns] = ns,
		[FOLD_COLLECTIVES_exposed_ns] = exposed_ns,
		[FOLD_COLLECTIVES_min_ns] = ns,
		[FOLD_COLLECTIVES_max_ns] = ns,
		[FOLD_COLLECTIVES_group_size] = of->group_size,
	};
	size_t step = torsh_steps_at(sampling->pass->steps, of->issued_ns);

	torsh_fold_add(sampling->fold, FOLD_COLLECTIVES, node, size_class(of->bytes), values);
	row->totals[FOLD_TOTAL_communication_ns] += ns;
	row->totals[FOLD_TOTAL_exposed_ns] += exposed_ns;
	if (of->group_size > row->world_size) {
		row->has_world_size = true;
		row->world_size = of->group_size;
	}
	if (step != STEP_NONE) {
		size_t n = row->n_phases / N_FOLD_PHASES, bucket = step >> row->shift;

		row->phases[FOLD_PHASE_communication_ns * n + bucket] += ns;
		row->phases[FOLD_PHASE_exposed_ns * n + bucket] += exposed_ns;
	}
}

static void add_collectives(struct sampling *sampling)
{
	const struct rank_collectives *all = &sampling->pass->collectives;
	Torsh__FoldRank *row = sampling->row;
	uint64_t leads[N_FOLD_LEADS];

	row->has_threshold = true;
	row->threshold = torsh_rank_row_threshold(all, sampling->pass->n_samples);
	reserve_samples(row, all->n);
	sampling->leads = torsh_need_items(NULL, 0, all->n * N_FOLD_LEADS, sizeof(*leads));
	row->totals[FOLD_TOTAL_collectives] = all->n + 1;
	for (size_t i = 0; i < all->n; i++) {
		const struct rank_collective *of = &all->items[i];

		torsh_lead_of(&sampling->cursor, sampling->pass, i, leads);
		add_sums(sampling, of, torsh_lead_exposed(&sampling->cursor, sampling->pass, i));
		if (torsh_rank_row_keeps(row->threshold, of->group, of->sequence))
			add_sample(sampling, of, leads);
	}
	settle_samples(sampling);
	torsh_lead_end(&sampling->cursor);
	torsh_hash_map_free(&sampling->texts);
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
	uint64_t hash, ns;
};

static int compare_times(const void *a, const void *b)
{
	const struct path_time *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return (x->hash > y->hash) - (x->hash < y->hash);
}

/* The fold has the spans of this process only. */
static void add_paths(Torsh__FoldRank *row, const struct fold *fold)
{
	const struct fold_table *spans = &fold->tables[FOLD_SPANS];
	struct path_time *times = torsh_need_items(NULL, 0, fold->n_nodes, sizeof(*times));
	size_t n;

	for (size_t i = 0; i < fold->n_nodes; i++)
		times[i].hash = fold->nodes[i].hash;
	for (size_t i = 0; i < spans->n; i++)
		times[spans->rows[i].node].ns += spans->rows[i].values[FOLD_SPANS_self_ns];
	qsort(times, fold->n_nodes, sizeof(*times), compare_times);
	for (n = 0; n < fold->n_nodes && n < FOLD_PATHS && times[n].ns; n++)
		;
	row->n_path = row->n_path_ns = n;
	row->path = torsh_need_items(NULL, 0, n, sizeof(*row->path));
	row->path_ns = torsh_need_items(NULL, 0, n, sizeof(*row->path_ns));
	for (size_t i = 0; i < n; i++) {
		row->path[i] = times[i].hash;
		row->path_ns[i] = times[i].ns;
	}
	free(times);
}

/* ---- the row --------------------------------------------------------------------------------- */

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
	struct sampling sampling = {
		.row = row, .fold = fold, .pass = pass, .last_issued_ns = process->start_ns};

	torsh__fold_rank__init(row);
	row->n_totals = N_FOLD_TOTALS;
	row->totals = torsh_need_items(NULL, 0, N_FOLD_TOTALS, sizeof(*row->totals));
	identify(row, recording, process, prepass);
	torsh_rank_clocks(row, recording);
	add_steps(row, process, pass);
	add_paths(row, fold);
	add_collectives(&sampling);
	add_totals(row, process, pass, prepass->n_operators > 0);
	return row;
}

void torsh_rank_row_free(Torsh__FoldRank *row)
{
	if (row)
		torsh__fold_rank__free_unpacked(row, NULL);
}
