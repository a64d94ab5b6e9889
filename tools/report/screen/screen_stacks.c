/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/screen/screen_stacks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/screen/screen_line.h"
#include "tools/report/text.h"

#define THREADS_SHOWN 6u
#define FRAMES_SHOWN 3u

static const char *function_of(const struct recorded_thread_frame *frame)
{
	return *frame->function ? frame->function : "?";
}

static bool has_python(const struct recorded_thread_stack *stack)
{
	for (size_t i = 0; i < stack->n_frames; i++) {
		if (stack->frames[i].is_python)
			return true;
	}
	return false;
}

/* "wait ‹ step (train.py:30) ‹ main (train.py:50)": the innermost one, then Python's. */
static char *innermost(const struct recorded_thread_stack *stack)
{
	bool is_python_only = has_python(stack);
	char *line = NULL;

	for (size_t i = 0, n = 0; i < stack->n_frames && n < FRAMES_SHOWN; i++) {
		const struct recorded_thread_frame *frame = &stack->frames[i];

		if (is_python_only && !frame->is_python && i)
			continue;
		line = torsh_screen_append(line, "%s (%s)", function_of(frame), frame->place);
		n++;
	}
	return line;
}

void torsh_screen_stacks(const struct recorded_thread_stacks *stacks)
{
	if (!stacks->n)
		return;
	torsh_screen_section("STACKS",
			     "%zu thread%s of pid %" PRIu32 " at %.4g s, innermost frame first",
			     stacks->n, stacks->n == 1 ? "" : "s", stacks->items[0].pid,
			     (double)stacks->items[0].at_ns / 1e9);
	for (size_t i = 0; i < stacks->n && i < THREADS_SHOWN; i++) {
		const struct recorded_thread_stack *stack = &stacks->items[i];
		char *line = innermost(stack);

		torsh_screen_line(STYLE_PLAIN, 2, "         %s (%" PRIu32 "): %s", stack->name,
				  stack->tid,
				  line		  ? line
				  : stack->reason ? stack->reason
						  : "no frames");
		free(line);
	}
	if (stacks->n > THREADS_SHOWN)
		torsh_screen_line(STYLE_DIM, 1, "         and %zu more (-v)",
				  stacks->n - THREADS_SHOWN);
}

void torsh_stacks_text(const struct recorded_thread_stacks *stacks)
{
	for (size_t i = 0; i < stacks->n; i++) {
		const struct recorded_thread_stack *stack = &stacks->items[i];

		putchar('\n');
		torsh_text_heading(stdout,
				   "Thread %" PRIu32 " of pid %" PRIu32 " (%s, %s) at %.4g s",
				   stack->tid, stack->pid, stack->name, stack->state,
				   (double)stack->at_ns / 1e9);
		for (size_t k = 0; k < stack->n_frames; k++)
			printf("  %-40s  %s\n", function_of(&stack->frames[k]),
			       stack->frames[k].place);
		if (stack->reason)
			printf("  %s\n", stack->reason);
	}
}

void torsh_stacks_json(struct json_writer *json, const struct recorded_thread_stacks *stacks)
{
	if (!stacks->n)
		return;
	torsh_json_begin_array(json, "thread_stacks");
	for (size_t i = 0; i < stacks->n; i++) {
		const struct recorded_thread_stack *stack = &stacks->items[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "pid", stack->pid);
		torsh_json_put_u64(json, "tid", stack->tid);
		torsh_json_put_text(json, "name", stack->name);
		torsh_json_put_text(json, "state", stack->state);
		torsh_json_put_u64(json, "at_ns", stack->at_ns);
		torsh_json_begin_array(json, "frames");
		for (size_t k = 0; k < stack->n_frames; k++) {
			const struct recorded_thread_frame *frame = &stack->frames[k];

			torsh_json_begin_object(json, NULL);
			torsh_json_put_text(json, "function",
					    *frame->function ? frame->function : NULL);
			torsh_json_put_text(json, "place", frame->place);
			torsh_json_put_bool(json, "python", frame->is_python);
			torsh_json_end_object(json);
		}
		torsh_json_end_array(json);
		torsh_json_put_text(json, "reason", stack->reason);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}
