/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What rows of ranks have: totals, phases, memory. */
#include "tools/ranks/job/job.h"

bool torsh_job_total(const struct job *job, uint32_t rank, enum fold_total total, uint64_t *value)
{
	const Torsh__FoldRank *row = job->ranks[rank].row;

	if (row->n_totals <= (size_t)total || !row->totals[total])
		return false;
	*value = row->totals[total] - 1;
	return true;
}

static bool is_bytes(enum fold_phase phase)
{
	return phase == FOLD_PHASE_tensor_peak_bytes || phase == FOLD_PHASE_heap_bytes;
}

static void put(uint64_t *sum, enum fold_phase phase, uint64_t value)
{
	if (!is_bytes(phase))
		*sum += value;
	else if (value > *sum)
		*sum = value;
}

uint64_t torsh_job_phase(const struct job *job, uint32_t rank, enum fold_phase phase,
			 uint32_t bucket)
{
	const Torsh__FoldRank *row = job->ranks[rank].row;
	size_t n = row->n_phases / N_FOLD_PHASES, by = job->shift - row->shift;
	uint64_t sum = 0;

	for (size_t i = (size_t)bucket << by; i < n && i >> by == bucket; i++)
		put(&sum, phase, row->phases[phase * n + i]);
	return sum;
}

uint64_t torsh_job_phase_sum(const struct job *job, uint32_t rank, enum fold_phase phase)
{
	const Torsh__FoldRank *row = job->ranks[rank].row;
	size_t n = row->n_phases / N_FOLD_PHASES;
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		put(&sum, phase, row->phases[phase * n + i]);
	return sum;
}

double torsh_job_imbalance(const struct job *job, enum fold_phase phase)
{
	double sum = 0, most = 0;

	for (uint32_t i = 0; i < job->n_ranks; i++) {
		double value = (double)torsh_job_phase_sum(job, i, phase);

		sum += value;
		most = value > most ? value : most;
	}
	return most > 0 ? (most - sum / (double)job->n_ranks) / most : -1;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Returns whether there are enough steps to see growth over the second half of them. */
static bool find_growth(const struct job *job, uint32_t rank, enum fold_phase phase, double *growth)
{
	uint32_t n = job->n_buckets, from = n / 2;
	uint64_t first = torsh_job_phase(job, rank, phase, from),
		 last = n ? torsh_job_phase(job, rank, phase, n - 1) : 0;

	if (n < 4 || !first || !last)
		return false;
	*growth = ((double)last - (double)first) / ((double)(n - 1 - from) * (1u << job->shift));
	return true;
}

void torsh_job_memory(const struct job *job, uint32_t rank, struct job_memory *memory)
{
	enum fold_phase phase = FOLD_PHASE_tensor_peak_bytes;

	*memory = (struct job_memory){.of = "device"};
	memory->has_capacity = torsh_job_total(job, rank, FOLD_TOTAL_device_capacity_bytes,
					       &memory->capacity_bytes);
	if (torsh_job_total(job, rank, FOLD_TOTAL_device_used_bytes, &memory->peak_bytes))
		;
	else if (torsh_job_total(job, rank, FOLD_TOTAL_rss_peak_bytes, &memory->peak_bytes))
		memory->of = "rss";
	else if (torsh_job_total(job, rank, FOLD_TOTAL_heap_peak_bytes, &memory->peak_bytes))
		memory->of = "heap";
	else
		memory->of = NULL;
	if (!memory->has_capacity && torsh_job_phase_sum(job, rank, FOLD_PHASE_heap_bytes))
		phase = FOLD_PHASE_heap_bytes;
	memory->has_growth = find_growth(job, rank, phase, &memory->growth);
	if (memory->has_capacity && memory->has_growth && memory->growth > 0)
		memory->steps_left =
			memory->capacity_bytes > memory->peak_bytes
				? (double)(memory->capacity_bytes - memory->peak_bytes) /
					  memory->growth
				: 0;
}
