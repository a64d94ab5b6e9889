/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/step_marks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/memory.h"

#define PROFILER_STEP "ProfilerStep#"
#define OPTIMIZER_STEP "Optimizer.step#"
#define DATA_LOADER "enumerate(DataLoader)#"

void torsh_step_marks_destroy(struct step_marks *marks)
{
	free(marks->items);
	*marks = (struct step_marks){0};
}

static void begin_anew(struct step_marks *marks, enum step_source source)
{
	if (!marks->items)
		marks->items = torsh_memory_new(STEP_MARKS_MAX, sizeof(*marks->items));
	marks->source = source;
	marks->n = 0;
	marks->n_steps = 0;
	marks->stride = 1;
}

static void thin_out(struct step_marks *marks)
{
	for (uint32_t i = 0; i < STEP_MARKS_MAX / 2; i++)
		marks->items[i] = marks->items[2 * i];
	marks->n = STEP_MARKS_MAX / 2;
	marks->stride *= 2;
}

static step_name name_of(uint64_t number)
{
	return number < STEP_PERHAPS_FIRST - 1 ? (step_name)number + 1 : 0;
}

bool torsh_step_marks_mark(struct step_marks *marks, enum step_source source, uint64_t number,
			   uint64_t stamp)
{
	if (source < marks->source)
		return false;
	if (source > marks->source)
		begin_anew(marks, source);
	/* The first optimizer call ends step 0. */
	if (number == UINT64_MAX)
		number = marks->n_steps + (source == STEP_BY_OPTIMIZER);
	marks->current = name_of(number);
	if (marks->n == STEP_MARKS_MAX)
		thin_out(marks);
	if (marks->n_steps++ % marks->stride == 0)
		marks->items[marks->n++] =
			(struct step_mark){.stamp = stamp, .name = marks->current};
	return true;
}

static bool begins_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static void start(struct step_marks *marks, uint64_t stamp)
{
	if (marks->start_stamp)
		return;
	marks->start_stamp = stamp;
	if (marks->source == STEP_BY_NOBODY)
		marks->current = STEP_PERHAPS_FIRST;
}

static bool take_scope(struct step_marks *marks, const struct event_op_begin *call,
		       const char *name, uint64_t stamp)
{
	if (begins_with(name, DATA_LOADER))
		start(marks, stamp);
	if (marks->is_scheduled)
		return false;
	if (begins_with(name, PROFILER_STEP))
		return torsh_step_marks_mark(marks, STEP_BY_PROFILER,
					     strtoull(name + strlen(PROFILER_STEP), NULL, 10),
					     stamp);
	if (!begins_with(name, OPTIMIZER_STEP))
		return false;
	if (!marks->optimizer)
		marks->optimizer = call->name;
	if (marks->optimizer == call->name) {
		marks->is_optimizing = true;
		marks->record = call->record;
	}
	return false;
}

static bool take_end(struct step_marks *marks, uint32_t record, uint64_t stamp)
{
	if (!marks->is_optimizing || marks->record != record)
		return false;
	marks->is_optimizing = false;
	return torsh_step_marks_mark(marks, STEP_BY_OPTIMIZER, UINT64_MAX, stamp);
}

bool torsh_step_marks_take(struct step_marks *marks, const struct event *event, const char *name,
			   uint64_t stamp)
{
	switch (event->id) {
	case EVENT_SCHEDULE:
		marks->is_scheduled = true;
		return false;
	case EVENT_SCHEDULE_STEP:
		return torsh_step_marks_mark(marks, (enum step_source)event->schedule_step.told_by,
					     event->schedule_step.number, stamp);
	case EVENT_STEP:
		return !marks->is_scheduled &&
		       torsh_step_marks_mark(marks, STEP_BY_MARK, event->step.number, stamp);
	case EVENT_OP_BEGIN:
		return event->op_begin.scope == OP_USER && name &&
		       take_scope(marks, &event->op_begin, name, stamp);
	case EVENT_OP_END:
		return take_end(marks, event->op_end.record, stamp);
	case EVENT_RANGE_PUSH:
		if (event->range_push.source == RANGE_BY_MODULE)
			start(marks, stamp);
		return false;
	default:
		return false;
	}
}

uint32_t torsh_step_marks_find(const struct step_marks *marks, uint64_t stamp)
{
	uint32_t low = 0, high = marks->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (marks->items[middle].stamp <= stamp)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

step_name torsh_step_marks_name_at(const struct step_marks *marks, uint64_t stamp)
{
	uint32_t mark = torsh_step_marks_find(marks, stamp);

	if (mark != UINT32_MAX)
		return marks->items[mark].name;
	return marks->source == STEP_BY_OPTIMIZER && marks->start_stamp &&
	       stamp >= marks->start_stamp;
}
