/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/growth/growth.h"

#define REPLACED_MIN 16u /* fewer blocks show nothing about their ages */
#define REPLACED_RATIO 4u

/* Returns the sum of one quarter of the run. */
static uint64_t quarter(uint32_t which, uint32_t n)
{
	uint64_t mask = 0;

	for (uint32_t i = n * which / 4; i < n * (which + 1) / 4; i++)
		mask |= UINT64_C(1) << i;
	return mask;
}

bool torsh_growth_is_steady(uint64_t parts, uint32_t n)
{
	uint32_t of[4], sum = 0;

	if (n < GROWTH_STEPS_MIN || n > 64)
		return false;
	for (uint32_t i = 1; i < 4; i++) {
		of[i] = (uint32_t)__builtin_popcountll(parts & quarter(i, n));
		sum += of[i];
	}
	/*
	 * It goes on growing: no quarter after the warm-up is without growth, and the last one has
	 * a sixth of it at least.
	 */
	return of[1] && of[2] && of[3] && of[3] * 6 >= sum;
}

bool torsh_growth_is_replaced(uint64_t n_early, uint64_t n_last)
{
	return n_last >= REPLACED_MIN && n_early * REPLACED_RATIO < n_last;
}

static void add_process(struct growth *growth, const struct recorded_process *process)
{
	const struct recorded_survivors *survivors = process->survivors.items;

	if (process->steps.n_steps > growth->n_steps)
		growth->n_steps = process->steps.n_steps;
	if (process->steps.n_parts < GROWTH_STEPS_MIN)
		return;
	growth->is_enough = true;
	for (size_t i = 0; i < process->survivors.n; i++) {
		if (!torsh_growth_is_steady(survivors[i].parts, process->steps.n_parts) ||
		    torsh_growth_is_replaced(survivors[i].early_blocks, survivors[i].last_blocks))
			continue;
		torsh_sites_add(&growth->found, &(struct allocation_site){
							.process = process,
							.stack = survivors[i].stack,
							.blocks = survivors[i].late_blocks,
							.bytes = survivors[i].late_bytes,
							.is_of_tensors = survivors[i].is_tensor,
						});
	}
}

void torsh_growth_find(struct growth *growth, struct recorded_process *const *processes,
		       size_t n_processes)
{
	for (size_t i = 0; i < n_processes; i++)
		add_process(growth, processes[i]);
}

void torsh_growth_free(struct growth *growth)
{
	torsh_sites_free(&growth->found);
}

const char *torsh_growth_rule(const struct recorded_process *process)
{
	static const char *const rules[] = {NULL, "calls of an optimizer", "ProfilerStep#",
					    "steps that the program marked"};

	return process->steps.rule < sizeof(rules) / sizeof(*rules) ? rules[process->steps.rule]
								    : NULL;
}
