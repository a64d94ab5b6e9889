/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/steps/scheduled_steps.h"

void torsh_scheduled_steps_add(struct scheduled_steps *scheduled, uint64_t at_ns,
			       const struct event_schedule_step *step)
{
	struct moment moment = {.start_ns = at_ns, .number = step->number, .step = step->step};

	if (step->told_by < scheduled->told_by)
		return;
	if (step->told_by > scheduled->told_by)
		scheduled->moments.n = 0;
	scheduled->told_by = step->told_by;
	torsh_moments_add(&scheduled->moments, moment);
}

static void add_step(struct steps *steps, const struct moment *moment, uint64_t end_ns)
{
	steps->n_all++;
	if (torsh_schedule_action(&steps->schedule, moment->step) == SCHEDULE_ACTIVE)
		torsh_steps_add(steps, moment->number, moment->start_ns, end_ns);
}

/* The last step ends with the profiler's scope, if that was recorded. */
static uint64_t end_of_profiler(const struct moments *profiler, uint64_t number, uint64_t last_ns)
{
	const struct moment *last = profiler->n ? &profiler->items[profiler->n - 1] : NULL;

	return last && last->number == number ? last->end_ns : last_ns;
}

/*
 * Work before an optimizer's first call is a step, too; work after its last call is not. Marks of
 * other sources begin steps.
 */
void torsh_scheduled_steps_make(const struct scheduled_steps *scheduled, uint64_t start_ns,
				uint64_t last_ns, const struct moments *profiler,
				struct steps *steps)
{
	static const enum step_rule rules[] = {
		[STEP_BY_NOBODY] = STEPS_BY_NONE,
		[STEP_BY_OPTIMIZER] = STEPS_BY_OPTIMIZER,
		[STEP_BY_PROFILER] = STEPS_BY_PROFILER,
		[STEP_BY_MARK] = STEPS_BY_USER,
	};
	const struct moments *moments = &scheduled->moments;
	uint32_t told_by = scheduled->told_by;
	bool is_optimizer = told_by == STEP_BY_OPTIMIZER;
	size_t n = moments->n - is_optimizer;

	steps->rule = told_by <= STEP_BY_MARK ? rules[told_by] : STEPS_BY_NONE;
	steps->is_scheduled = steps->is_restricted = true;
	if (is_optimizer && start_ns && start_ns < moments->items[0].start_ns)
		add_step(steps, &(struct moment){.start_ns = start_ns}, moments->items[0].start_ns);
	for (size_t i = 0; i < n; i++) {
		const struct moment *moment = &moments->items[i];
		uint64_t end_ns = last_ns;

		if (i + 1 < moments->n)
			end_ns = moment[1].start_ns;
		else if (told_by == STEP_BY_PROFILER)
			end_ns = end_of_profiler(profiler, moment->number, last_ns);
		add_step(steps, moment, end_ns);
	}
}
