/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/growth/growth.h"

#include <math.h>

#include "agent/wire/event.h"
#include "tools/memory/growth/growth_samples.h"
#include "tools/memory/growth/growth_trend.h"

#define REPLACED_MIN 16u /* fewer blocks show nothing about their ages */
#define REPLACED_RATIO 4u
#define MUCH_PART 2
#define SMALL_PART 1000

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

/* ---- by samples ------------------------------------------------------------------------------ */

struct adding {
	struct growth *growth;
	const struct recorded_process *process;
	const struct growth_samples *samples;
	double span; /* steps or seconds */
};

static uint64_t rounded(double gain)
{
	return gain > 0 ? (uint64_t)(gain + 0.5) : 0;
}

static bool is_of_tensors(const struct recorded_process *process, uint32_t stack)
{
	const struct recorded_survivors *survivors =
		torsh_recording_row(&process->survivors, stack, sizeof(*survivors));

	return survivors && survivors->is_tensor;
}

/*
 * Blocks that become larger and not more have to gain half: a ring of entries of many sizes has
 * another sum in each step.
 */
static bool is_much(const struct growth_samples *samples, const struct growth_series *series,
		    double blocks_slope)
{
	size_t first = torsh_growth_first_late(samples->n), last = samples->n - 1;

	return blocks_slope * (samples->x[last] - samples->x[first]) >= 0.5 ||
	       (series->bytes[last] - series->bytes[first]) * MUCH_PART >= series->bytes[first];
}

static void add_series(const struct growth_series *series, void *context)
{
	const struct adding *adding = context;
	const struct growth_samples *samples = adding->samples;
	size_t first = torsh_growth_first_late(samples->n), n = samples->n - first;
	struct growth_slope bytes, blocks;
	double span = adding->span;

	if (!torsh_growth_goes_on(samples->x, series->bytes, samples->n))
		return;
	bytes = torsh_growth_slope(samples->x + first, series->bytes + first, n);
	blocks = torsh_growth_slope(samples->x + first, series->blocks + first, n);
	if (!is_much(samples, series, blocks.slope))
		return;
	torsh_sites_add(&adding->growth->found,
			&(struct allocation_site){
				.process = adding->process,
				.stack = series->stack,
				.blocks = rounded(blocks.slope * span),
				.bytes = rounded(bytes.slope * span),
				.variance = {.blocks = pow(blocks.error * span, 2),
					     .bytes = pow(bytes.error * span, 2)},
				.growth_span = span,
				.is_of_tensors = is_of_tensors(adding->process, series->stack),
			});
}

static double span_of(const struct growth_samples *samples, const struct recorded_process *process,
		      bool is_of_time)
{
	if (!is_of_time && process->steps.late_steps)
		return (double)process->steps.late_steps;
	return samples->x[samples->n - 1] - samples->x[torsh_growth_first_late(samples->n)];
}

/* Returns false if the process has too few samples. */
static bool add_by_samples(struct growth *growth, const struct recorded_process *process,
			   const struct growth_scope *scope)
{
	struct growth_samples samples;
	struct adding adding = {.growth = growth, .process = process, .samples = &samples};

	torsh_growth_samples_choose(&samples, process, scope);
	if (samples.n < GROWTH_SAMPLES_MIN)
		return false;
	adding.span = span_of(&samples, process, scope->is_of_time);
	torsh_growth_samples_each(&samples, process, add_series, &adding);
	return true;
}

/* ---- by survivors ---------------------------------------------------------------------------- */

static void add_survivors(struct growth *growth, const struct recorded_process *process)
{
	const struct recorded_survivors *survivors = process->survivors.items;

	for (size_t i = 0; i < process->survivors.n; i++) {
		if (!torsh_growth_is_steady(survivors[i].parts, process->steps.n_parts) ||
		    torsh_growth_is_replaced(survivors[i].early_blocks, survivors[i].last_blocks))
			continue;
		torsh_sites_add(&growth->found,
				&(struct allocation_site){
					.process = process,
					.stack = survivors[i].stack,
					.blocks = survivors[i].late_blocks,
					.bytes = survivors[i].late_bytes,
					.variance = {.blocks = NAN, .bytes = NAN},
					.growth_span = (double)process->steps.late_steps,
					.is_of_tensors = survivors[i].is_tensor,
				});
	}
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Returns the steps of a rule that the writer lacks; NULL: it saw some, or there are none. */
static const struct steps *readers_steps(const struct growth *growth,
					 const struct recorded_process *process)
{
	const struct prepass_process *of =
		growth->prepass ? torsh_prepass_of(growth->prepass, process) : NULL;

	return of && of->steps.n && process->steps.rule > STEP_BY_MARK ? &of->steps : NULL;
}

void torsh_growth_take_steps(struct recorded_process *process, const struct steps *steps)
{
	if (process->steps.n_steps || !steps->n)
		return;
	process->steps = (struct profile_steps){
		.rule = GROWTH_READERS_RULES + steps->rule,
		.n_steps = steps->n,
		.late_steps = steps->n - (steps->n + 3) / 4,
	};
}

static void add_process(struct growth *growth, const struct recorded_process *process,
			const struct time_window *window)
{
	const struct growth_scope scope = {
		.steps = readers_steps(growth, process),
		.window = window,
		.is_of_time = growth->over == GROWTH_OVER_TIME,
	};

	if (!scope.is_of_time && process->steps.n_steps < GROWTH_STEPS_MIN)
		return;
	if (add_by_samples(growth, process, &scope)) {
		growth->is_enough = true;
		return;
	}
	if (scope.is_of_time || process->steps.n_parts < GROWTH_STEPS_MIN)
		return;
	growth->is_enough = true;
	add_survivors(growth, process);
}

void torsh_growth_find(struct growth *growth, struct recorded_process *const *processes,
		       size_t n_processes)
{
	for (size_t i = 0; i < n_processes; i++) {
		if (processes[i]->steps.n_steps > growth->n_steps)
			growth->n_steps = processes[i]->steps.n_steps;
	}
	growth->over =
		growth->takes_time && !growth->n_steps ? GROWTH_OVER_TIME : GROWTH_OVER_STEPS;
	for (size_t i = 0; i < n_processes; i++)
		add_process(growth, processes[i],
			    growth->windows ? &growth->windows->items[i] : NULL);
}

void torsh_growth_fold(struct growth *growth)
{
	struct allocation_sites *found = &growth->found;
	double all = torsh_growth_bytes(growth);
	size_t n = 0;

	for (size_t i = 0; i < found->n; i++) {
		const struct allocation_site *site = &found->items[i];

		if (torsh_growth_rate(site).bytes * SMALL_PART >= all) {
			found->items[n++] = *site;
			continue;
		}
		growth->small.n++;
		growth->small.bytes += site->bytes;
		growth->small.blocks += site->blocks;
		growth->small_rate += torsh_growth_rate(site).bytes;
	}
	found->n = n;
}

struct growth_rate torsh_growth_rate(const struct allocation_site *site)
{
	double span = site->growth_span;

	if (!(span > 0))
		return (struct growth_rate){0};
	return (struct growth_rate){
		.bytes = (double)site->bytes / span,
		.blocks = (double)site->blocks / span,
		.bytes_error = sqrt(site->variance.bytes) / span,
		.blocks_error = sqrt(site->variance.blocks) / span,
	};
}

double torsh_growth_bytes(const struct growth *growth)
{
	double bytes = growth->small_rate;

	for (size_t i = 0; i < growth->found.n; i++)
		bytes += torsh_growth_rate(&growth->found.items[i]).bytes;
	return bytes;
}

void torsh_growth_free(struct growth *growth)
{
	torsh_sites_free(&growth->found);
}

const char *torsh_growth_rule(const struct recorded_process *process)
{
	static const char *const rules[] = {
		[STEP_BY_OPTIMIZER] = "calls of an optimizer",
		[STEP_BY_PROFILER] = "ProfilerStep#",
		[STEP_BY_MARK] = "steps that the program marked",
	};
	uint32_t rule = process->steps.rule;

	if (rule < sizeof(rules) / sizeof(*rules))
		return rules[rule];
	rule -= GROWTH_READERS_RULES;
	return rule < N_STEP_RULES ? torsh_step_rule_texts[rule] : NULL;
}
