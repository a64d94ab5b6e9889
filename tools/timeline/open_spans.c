/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/open_spans.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

/*
 * Not a constant: compilers turn a division by it into a slow instruction, which took a seventh of
 * an export's time.
 */
static const volatile size_t span_bytes = sizeof(struct span);

struct span *torsh_open_spans_add(struct open_spans *thread)
{
	struct span *span;

	if (thread->n == thread->n_made) {
		thread->spans = torsh_array_reserve(thread->spans, thread->n, &thread->n_room,
						    sizeof(*thread->spans));
		thread->spans[thread->n_made++] = torsh_need(malloc(sizeof(*span)));
	}
	span = thread->spans[thread->n];
	memset(span, 0, span_bytes);
	return span;
}

struct span *torsh_open_spans_innermost(const struct open_spans *thread, uint32_t n)
{
	while (n && thread->spans[n - 1]->is_async)
		n--;
	return n ? thread->spans[n - 1] : NULL;
}

struct span *torsh_open_spans_take(struct open_spans *thread, uint32_t i)
{
	struct span *span = thread->spans[i];

	memmove(thread->spans + i, thread->spans + i + 1,
		(thread->n - i - 1) * sizeof(*thread->spans));
	thread->spans[--thread->n] = torsh_need(malloc(sizeof(*span)));
	for (; i < thread->n; i++)
		thread->spans[i]->outer =
			thread->spans[i]->is_async ? NULL : torsh_open_spans_innermost(thread, i);
	return span;
}

bool torsh_span_has_record(const struct span *span, uint32_t record)
{
	return span->kind == SPAN_OPERATOR && span->record == record;
}

uint32_t torsh_open_spans_find(const struct open_spans *thread, uint32_t record)
{
	for (uint32_t i = thread->n; i; i--) {
		if (torsh_span_has_record(thread->spans[i - 1], record))
			return i - 1;
	}
	return UINT32_MAX;
}

struct span *torsh_open_spans_operator(const struct open_spans *thread)
{
	for (uint32_t i = thread->n; i; i--) {
		if (thread->spans[i - 1]->kind == SPAN_OPERATOR)
			return thread->spans[i - 1];
	}
	return NULL;
}

void torsh_open_threads_list(struct open_threads *threads, struct open_spans *thread)
{
	if (thread->is_listed)
		return;
	thread->is_listed = true;
	threads->busy = torsh_array_reserve(threads->busy, threads->n_busy, &threads->busy_room,
					    sizeof(*threads->busy));
	threads->busy[threads->n_busy++] = thread;
}

struct open_spans *torsh_open_threads_find(struct open_threads *threads, uint32_t record,
					   uint32_t *place)
{
	for (size_t i = 0; i < threads->n_busy;) {
		struct open_spans *thread = threads->busy[i];

		*place = torsh_open_spans_find(thread, record);
		if (*place != UINT32_MAX)
			return thread;
		if (thread->n) {
			i++;
			continue;
		}
		thread->is_listed = false;
		threads->busy[i] = threads->busy[--threads->n_busy];
	}
	return NULL;
}
