/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/torch/torch_steps.h"

#include <string.h>

#include "agent/producer/label.h"
#include "agent/producer/schedule.h"

#define PROFILER_STEP "ProfilerStep#"
#define OPTIMIZER_STEP "Optimizer.step#"

/* The rest after the prefix, or NULL. */
static const char *behind(const char *name, const char *prefix, size_t n_prefix)
{
	return strncmp(name, prefix, n_prefix) ? NULL : name + n_prefix;
}

static uint64_t number_at(const char *digits)
{
	uint64_t number = 0;

	if (!*digits)
		return UINT64_MAX;
	for (; *digits >= '0' && *digits <= '9'; digits++)
		number = number * 10 + (uint64_t)(*digits - '0');
	return *digits ? UINT64_MAX : number;
}

bool torsh_torch_steps_is_profilers(const char *name)
{
	return behind(name, PROFILER_STEP, sizeof(PROFILER_STEP) - 1);
}

bool torsh_torch_steps_is_optimizers(const char *name)
{
	return behind(name, OPTIMIZER_STEP, sizeof(OPTIMIZER_STEP) - 1);
}

void torsh_torch_steps_begin(struct torch_steps *steps, struct producer *producer, const char *name,
			     uint64_t record)
{
	const char *number = behind(name, PROFILER_STEP, sizeof(PROFILER_STEP) - 1);
	uint32_t label, chosen = torsh_schedule_optimizer_label();

	if (number)
		torsh_schedule_step(producer, STEP_BY_PROFILER, number_at(number));
	if (!behind(name, OPTIMIZER_STEP, sizeof(OPTIMIZER_STEP) - 1))
		return;
	label = torsh_label(name, strlen(name));
	/* An outer call stays the thread's optimizer call. */
	if (!label || (chosen && chosen != label))
		return;
	*steps = (struct torch_steps){.record = record, .optimizer = label};
}

void torsh_torch_steps_end(struct torch_steps *steps, struct producer *producer, uint64_t record)
{
	if (!steps->record || steps->record != record)
		return;
	steps->record = 0;
	torsh_schedule_optimizer(producer, steps->optimizer);
}
