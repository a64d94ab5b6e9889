/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/step_marks.h"

#include <stdlib.h>
#include <string.h>

#include "tools/writer/memory.h"

void torsh_steps_destroy(struct step_marks *marks)
{
	free(marks->stamps);
	*marks = (struct step_marks){0};
}

static void begin_anew(struct step_marks *marks, enum step_rule rule)
{
	if (!marks->stamps)
		marks->stamps = torsh_memory_new(STEP_MARKS_MAX, sizeof(*marks->stamps));
	marks->rule = rule;
	marks->n = 0;
	marks->n_steps = 0;
	marks->stride = 1;
}

static void thin_out(struct step_marks *marks)
{
	for (uint32_t i = 0; i < STEP_MARKS_MAX / 2; i++)
		marks->stamps[i] = marks->stamps[2 * i];
	marks->n = STEP_MARKS_MAX / 2;
	marks->stride *= 2;
}

int torsh_steps_mark(struct step_marks *marks, enum step_rule rule, uint64_t stamp)
{
	if (rule < marks->rule)
		return 0;
	if (rule > marks->rule)
		begin_anew(marks, rule);
	if (marks->n == STEP_MARKS_MAX)
		thin_out(marks);
	if (marks->n_steps++ % marks->stride == 0)
		marks->stamps[marks->n++] = stamp;
	return 1;
}

static int begins_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

int torsh_steps_scope(struct step_marks *marks, uint32_t label, const char *name, uint64_t stamp)
{
	if (begins_with(name, "ProfilerStep#"))
		return torsh_steps_mark(marks, STEPS_BY_PROFILER, stamp);
	if (!begins_with(name, "Optimizer.step#"))
		return 0;
	if (marks->rule == STEPS_NONE)
		marks->label = label;
	return marks->label == label && torsh_steps_mark(marks, STEPS_BY_OPTIMIZER, stamp);
}

uint32_t torsh_steps_find(const struct step_marks *marks, uint64_t stamp)
{
	uint32_t low = 0, high = marks->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (marks->stamps[middle] <= stamp)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}
