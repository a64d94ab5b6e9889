/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/cpu/thread_stays.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

void torsh_thread_stays_add(struct thread_stays *stays, struct thread_stay stay)
{
	if (stay.end_ns <= stay.begin_ns)
		return;
	stays->items = torsh_array_reserve(stays->items, stays->n, &stays->n_room, sizeof(stay));
	stays->items[stays->n++] = stay;
}

static bool is_operator(const struct span *span)
{
	return span->kind == SPAN_OPERATOR && span->scope != OP_USER && !span->is_async;
}

void torsh_thread_stays_end(struct thread_stays *stays, const struct span *span)
{
	const struct span *outer = span->outer;

	if (!is_operator(span))
		return;
	while (outer && !is_operator(outer))
		outer = outer->outer;
	if (!outer)
		torsh_thread_stays_add(
			stays, (struct thread_stay){.begin_ns = span->start_ns,
						    .end_ns = span->end_ns,
						    .thread = span->thread,
						    .part = PART_OPERATORS,
						    .name = span->name,
						    .is_backward = span->scope == OP_BACKWARD ||
								   span->traits & NAME_BACKWARD});
}

static enum step_part part_of(enum thread_wait_kind kind)
{
	switch (kind) {
	case THREAD_WAIT_GIL:
		return PART_GIL;
	case THREAD_WAIT_MUTEX:
	case THREAD_WAIT_CONDITION:
	case THREAD_WAIT_SEMAPHORE:
	case THREAD_WAIT_RWLOCK:
	case THREAD_WAIT_BARRIER:
	case THREAD_WAIT_JOIN:
		return PART_LOCKS;
	case THREAD_WAIT_SLEEP:
	case THREAD_WAIT_CHILD:
	case THREAD_WAIT_SIGNAL:
		return PART_OTHER_WAITS;
	default:
		return PART_IO;
	}
}

static bool is_for_data(const struct span *innermost)
{
	for (; innermost; innermost = innermost->outer) {
		if (innermost->traits & NAME_DATA)
			return true;
	}
	return false;
}

void torsh_thread_stays_event(struct thread_stays *stays, const struct timeline_event *event,
			      const struct span *innermost)
{
	const struct event_thread_wait *wait = &event->event.thread_wait;
	const struct event_python_gc *run = &event->event.python_gc;

	if (event->event.id == EVENT_PYTHON_GC)
		torsh_thread_stays_add(stays,
				       (struct thread_stay){.begin_ns = run->begin,
							    .end_ns = run->begin + run->duration_ns,
							    .thread = event->thread,
							    .part = PART_GC});
	else if (event->event.id == EVENT_THREAD_WAIT)
		torsh_thread_stays_add(
			stays,
			(struct thread_stay){.begin_ns = wait->begin,
					     .end_ns = wait->begin + wait->duration_ns,
					     .thread = event->thread,
					     .wait = wait->kind + 1,
					     .waker = wait->waker,
					     .woken_ns = wait->begin + wait->woken_ns,
					     .part = is_for_data(innermost) &&
								     wait->kind != THREAD_WAIT_GIL
							     ? PART_DATA
							     : part_of(wait->kind)});
}

uint32_t torsh_thread_stays_main(const struct thread_stays *stays, const struct steps *steps,
				 size_t n_threads)
{
	uint64_t *ns = torsh_need_items(NULL, 0, n_threads + 1, sizeof(*ns));
	uint32_t most = 0;

	for (size_t i = 0; i < stays->n; i++) {
		const struct thread_stay *stay = &stays->items[i];

		if (stay->part == PART_OPERATORS && stay->thread < n_threads &&
		    torsh_steps_at(steps, stay->begin_ns) != STEP_NONE)
			ns[stay->thread] += stay->end_ns - stay->begin_ns;
	}
	for (uint32_t i = 1; i < n_threads; i++)
		most = ns[i] > ns[most] ? i : most;
	free(ns);
	return most;
}

void torsh_thread_stays_free(struct thread_stays *stays)
{
	free(stays->items);
	*stays = (struct thread_stays){0};
}
