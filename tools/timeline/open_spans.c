/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/open_spans.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"

/*
 * Not a constant: of one the compiler makes a slow instruction, which was a seventh of an export's
 * time.
 */
static const volatile size_t call_bytes = sizeof(struct call);

struct call *torsh_open_calls_add(struct open_calls *thread)
{
	struct call *call;

	if (thread->n == thread->n_made) {
		thread->calls = torsh_need_room(thread->calls, thread->n, &thread->n_room,
						sizeof(*thread->calls));
		thread->calls[thread->n_made++] = torsh_need(malloc(sizeof(*call)));
	}
	call = thread->calls[thread->n];
	memset(call, 0, call_bytes);
	return call;
}

struct call *torsh_open_calls_innermost(const struct open_calls *thread, uint32_t n)
{
	while (n && thread->calls[n - 1]->is_async)
		n--;
	return n ? thread->calls[n - 1] : NULL;
}

struct call *torsh_open_calls_take(struct open_calls *thread, uint32_t i)
{
	struct call *call = thread->calls[i];

	memmove(thread->calls + i, thread->calls + i + 1,
		(thread->n - i - 1) * sizeof(*thread->calls));
	thread->calls[--thread->n] = torsh_need(malloc(sizeof(*call)));
	for (; i < thread->n; i++)
		thread->calls[i]->outer =
			thread->calls[i]->is_async ? NULL : torsh_open_calls_innermost(thread, i);
	return call;
}

bool torsh_call_is_record(const struct call *call, uint32_t record)
{
	return call->kind == CALL_OPERATOR && call->record == record;
}

uint32_t torsh_open_calls_find(const struct open_calls *thread, uint32_t record)
{
	for (uint32_t i = thread->n; i; i--) {
		if (torsh_call_is_record(thread->calls[i - 1], record))
			return i - 1;
	}
	return UINT32_MAX;
}

struct call *torsh_open_calls_operator(const struct open_calls *thread)
{
	for (uint32_t i = thread->n; i; i--) {
		if (thread->calls[i - 1]->kind == CALL_OPERATOR)
			return thread->calls[i - 1];
	}
	return NULL;
}
