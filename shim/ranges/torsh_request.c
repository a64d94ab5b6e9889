/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The entry points of torsh.h for requests. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "shim/hooks.h"
#include "shim/ranges/ranges.h"
#include "shim/ranges/task_calls.h"

/* Requests of a program in C, which the agent numbers: those within another are a part of it. */
#define FIRST_OF_C (UINT64_C(1) << 39)
#define TRACEPARENT_MAX 512u

enum { BEGIN_TURN = 1, BEGIN_SHARED = 2 };

static _Thread_local struct {
	uint64_t number, former;
	uint32_t n_open;
} own;

static uint64_t begin(uint64_t number, const char *name, const char *traceparent, uint32_t flags)
{
	struct task_begin task = {
		.number = number,
		.parent = torsh_task_current(),
		.kind = TASK_REQUEST,
		.name = name,
		.traceparent = traceparent,
		.n_traceparent = traceparent ? strnlen(traceparent, TRACEPARENT_MAX) : 0,
		.flags = flags & BEGIN_SHARED ? TASK_IS_SHARED : 0,
	};

	torsh_task_begin(&task);
	if (flags & BEGIN_TURN)
		torsh_task_turn(number);
	return task.parent;
}

EXPORT uint64_t torsh_v1_request_begin(const char *name, uint64_t number, const char *traceparent,
				       uint32_t flags)
{
	if (number)
		return begin(number, name, traceparent, flags);
	if (own.n_open++ || !torsh_tasks_are_wanted())
		return 0;
	own.number = FIRST_OF_C + torsh_ranges_number();
	own.former = begin(own.number, name, traceparent, BEGIN_TURN);
	return own.former;
}

EXPORT uint64_t torsh_v1_request_turn(uint64_t number)
{
	return torsh_task_turn(number);
}

EXPORT void torsh_v1_request_end(uint64_t number, uint64_t former)
{
	if (number) {
		if (torsh_task_current() == number)
			torsh_task_turn(former);
		torsh_task_end(number);
		return;
	}
	if (!own.n_open || --own.n_open || !own.number)
		return;
	if (torsh_task_current() == own.number)
		torsh_task_turn(own.former);
	torsh_task_end(own.number);
	own.number = 0;
}

/* variable: NULL follows greenlets. */
EXPORT int torsh_v1_request_follow(void *variable)
{
	return variable ? torsh_tasks_follow(variable) : torsh_tasks_follow_greenlets();
}
