/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ranks/make/rank_samples.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tools/base/die.h"
#include "tools/ranks/make/fold_make.h"

/* ---- which collectives are kept -------------------------------------------------------------- */

static uint64_t hash_block(const char *group, uint64_t sequence)
{
	uint64_t block = sequence >> FOLD_BLOCK_BITS;

	return XXH64(&block, sizeof(block), XXH64(group, strlen(group), 0));
}

static bool is_kept(uint64_t threshold, const char *group, uint64_t sequence)
{
	return hash_block(group, sequence) <= threshold;
}

static int compare_hashes(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Ranks with as many collectives choose alike: the blocks with the lowest hashes. */
static uint64_t choose_threshold(const struct rank_collectives *all, size_t n_samples)
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

/* ---- one by one ------------------------------------------------------------------------------ */

void torsh_rank_samples_begin(struct rank_samples *samples, const struct rank_collectives *all,
			      size_t n_kept)
{
	Torsh__FoldRank *row = samples->row;
	size_t n = all->n;

	row->has_threshold = true;
	row->threshold = choose_threshold(all, n_kept);
	row->totals[FOLD_TOTAL_collectives] = n + 1;
	row->group = torsh_need_items(NULL, 0, n, sizeof(*row->group));
	row->name = torsh_need_items(NULL, 0, n, sizeof(*row->name));
	row->sequence_step = torsh_need_items(NULL, 0, n, sizeof(*row->sequence_step));
	row->step = torsh_need_items(NULL, 0, n, sizeof(*row->step));
	row->bytes = torsh_need_items(NULL, 0, n, sizeof(*row->bytes));
	row->issued_step = torsh_need_items(NULL, 0, n, sizeof(*row->issued_step));
	row->queued_ns = torsh_need_items(NULL, 0, n, sizeof(*row->queued_ns));
	row->length_ns = torsh_need_items(NULL, 0, n, sizeof(*row->length_ns));
	row->flags = torsh_need_items(NULL, 0, n, sizeof(*row->flags));
	row->cpu_ran_ns = torsh_need_items(NULL, 0, n, sizeof(*row->cpu_ran_ns));
	row->cpu_waited_ns = torsh_need_items(NULL, 0, n, sizeof(*row->cpu_waited_ns));
	row->cpu_throttled_ns = torsh_need_items(NULL, 0, n, sizeof(*row->cpu_throttled_ns));
	row->cpu_stolen_ns = torsh_need_items(NULL, 0, n, sizeof(*row->cpu_stolen_ns));
	samples->leads = torsh_need_items(NULL, 0, n * N_FOLD_LEADS, sizeof(*samples->leads));
}

static uint32_t put_text(struct rank_samples *samples, const char *text)
{
	Torsh__FoldRank *row = samples->row;
	size_t i = torsh_hash_map_put_text(&samples->texts, text, row->n_texts)->value;

	if (i == row->n_texts) {
		row->texts = torsh_need_items(row->texts, i, i + 1, sizeof(*row->texts));
		row->texts[row->n_texts++] = torsh_need(strdup(text));
	}
	return (uint32_t)i;
}

/* What is known of a process is known of all its samples. */
static void add_cpu(Torsh__FoldRank *row, size_t i, const struct rank_cpu *cpu)
{
	row->cpu_ran_ns[i] = cpu->ran_ns;
	row->cpu_waited_ns[i] = cpu->waited_ns;
	row->cpu_throttled_ns[i] = cpu->throttled_ns;
	row->cpu_stolen_ns[i] = cpu->stolen_ns;
	row->n_cpu_ran_ns = row->n_cpu_waited_ns = cpu->has_time ? i + 1 : 0;
	row->n_cpu_throttled_ns = cpu->has_throttled ? i + 1 : 0;
	row->n_cpu_stolen_ns = cpu->has_stolen ? i + 1 : 0;
}

static void add_sample(struct rank_samples *samples, const struct rank_collective *of, size_t step,
		       const uint64_t *leads, const struct rank_cpu *cpu)
{
	Torsh__FoldRank *row = samples->row;
	size_t i = row->n_group++;
	bool has_end = of->flags & FOLD_SAMPLE_ENDS && of->end_ns >= of->entered_ns;

	row->group[i] = put_text(samples, of->group);
	row->name[i] = put_text(samples, of->name);
	row->sequence_step[i] = (int64_t)(of->sequence - samples->last_sequence);
	row->step[i] = step == RANK_SAMPLES_NO_STEP ? 0 : (uint32_t)step + 1;
	row->bytes[i] = of->bytes;
	row->issued_step[i] = (int64_t)(of->issued_ns - samples->last_issued_ns);
	row->queued_ns[i] = of->entered_ns > of->issued_ns ? of->entered_ns - of->issued_ns : 0;
	row->length_ns[i] = has_end ? of->end_ns - of->entered_ns : 0;
	row->flags[i] = of->flags & ~(has_end ? 0u : FOLD_SAMPLE_ENDS);
	if (leads)
		memcpy(&samples->leads[i * N_FOLD_LEADS], leads, N_FOLD_LEADS * sizeof(*leads));
	if (cpu)
		add_cpu(row, i, cpu);
	samples->last_sequence = of->sequence;
	samples->last_issued_ns = of->issued_ns;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static uint32_t size_class(uint64_t bytes)
{
	return bytes ? 64u - (uint32_t)__builtin_clzll(bytes) : 0;
}

static void add_sums(struct rank_samples *samples, const struct rank_collective *of, size_t step,
		     uint64_t exposed_ns)
{
	Torsh__FoldRank *row = samples->row;
	uint64_t ns = of->flags & FOLD_SAMPLE_ENDS && of->end_ns > of->entered_ns
			      ? of->end_ns - of->entered_ns
			      : 0;
	uint32_t node = torsh_fold_node(samples->fold, 0,
					&(struct fold_key){.kind = FOLD_COLLECTIVE,
							   .function = of->name,
							   .file = of->group,
							   .build_id = of->backend});
	const uint64_t values[N_FOLD_COLLECTIVES] = {
		[FOLD_COLLECTIVES_calls] = 1,
		[FOLD_COLLECTIVES_bytes] = of->bytes,
		[FOLD_COLLECTIVES_total_ns] = ns,
		[FOLD_COLLECTIVES_exposed_ns] = exposed_ns,
		[FOLD_COLLECTIVES_min_ns] = ns,
		[FOLD_COLLECTIVES_max_ns] = ns,
		[FOLD_COLLECTIVES_group_size] = of->group_size,
	};

	torsh_fold_add(samples->fold, FOLD_COLLECTIVES, node, size_class(of->bytes), values);
	row->totals[FOLD_TOTAL_communication_ns] += ns;
	row->totals[FOLD_TOTAL_exposed_ns] += exposed_ns;
	if (of->group_size > row->world_size) {
		row->has_world_size = true;
		row->world_size = of->group_size;
	}
	if (step != RANK_SAMPLES_NO_STEP) {
		size_t n = row->n_phases / N_FOLD_PHASES, bucket = step >> row->shift;

		row->phases[FOLD_PHASE_communication_ns * n + bucket] += ns;
		row->phases[FOLD_PHASE_exposed_ns * n + bucket] += exposed_ns;
	}
}

void torsh_rank_samples_add(struct rank_samples *samples, const struct rank_collective *of,
			    size_t step, uint64_t exposed_ns, const uint64_t *leads,
			    const struct rank_cpu *cpu)
{
	add_sums(samples, of, step, exposed_ns);
	if (is_kept(samples->row->threshold, of->group, of->sequence))
		add_sample(samples, of, step, leads, cpu);
}

void torsh_rank_samples_end(struct rank_samples *samples)
{
	Torsh__FoldRank *row = samples->row;
	size_t n = row->n_group;

	row->n_name = row->n_sequence_step = row->n_step = row->n_bytes = row->n_issued_step =
		row->n_queued_ns = row->n_length_ns = row->n_flags = n;
	row->n_leads = n * N_FOLD_LEADS;
	row->leads = torsh_need_items(NULL, 0, row->n_leads, sizeof(*row->leads));
	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < N_FOLD_LEADS; k++)
			row->leads[k * n + i] = samples->leads[i * N_FOLD_LEADS + k];
	}
	free(samples->leads);
	torsh_hash_map_free(&samples->texts);
}
