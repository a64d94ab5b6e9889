/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/cpu/wait_wakers.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/hash_map.h"
#include "tools/base/die.h"
#include "tools/recording/timeline.h"

/* Others end by a device, a clock or another process; those of the second kind often do. */
#define KINDS_WITH_WAKERS                                                           \
	(UINT32_C(1) << THREAD_WAIT_MUTEX | UINT32_C(1) << THREAD_WAIT_CONDITION |  \
	 UINT32_C(1) << THREAD_WAIT_SEMAPHORE | UINT32_C(1) << THREAD_WAIT_RWLOCK | \
	 UINT32_C(1) << THREAD_WAIT_BARRIER | UINT32_C(1) << THREAD_WAIT_GIL)
#define KINDS_OF_FILES (UINT32_C(1) << THREAD_WAIT_READ | UINT32_C(1) << THREAD_WAIT_POLL)

struct collection {
	struct wait_wakers *wakers;
	struct recorded_process *const *processes;
	size_t n_processes, room;
	struct hash_map rows; /* indices */
	uint32_t kinds;
};

static bool is_chosen(const struct collection *collection, const struct recorded_process *process)
{
	for (size_t i = 0; i < collection->n_processes; i++) {
		if (collection->processes[i] == process)
			return true;
	}
	return false;
}

static struct wait_waker *row_of(struct collection *collection,
				 const struct recorded_process *process, uint32_t thread,
				 const struct event_thread_wait *wait)
{
	struct wait_wakers *wakers = collection->wakers;
	const uint32_t key[] = {process->number, wait->kind, thread, wait->waker};
	size_t i = torsh_hash_map_put(&collection->rows, key, sizeof(key), wakers->n)->value;

	if (i < wakers->n)
		return &wakers->items[i];
	wakers->items = torsh_array_reserve(wakers->items, wakers->n, &collection->room,
					    sizeof(*wakers->items));
	wakers->items[wakers->n] = (struct wait_waker){
		.process = process, .kind = wait->kind, .thread = thread, .waker = wait->waker};
	return &wakers->items[wakers->n++];
}

static int see_event(void *context, const struct recorded_process *process,
		     const struct timeline_event *event)
{
	const struct event_thread_wait *wait = &event->event.thread_wait;
	struct collection *collection = context;
	struct wait_waker *row;

	if (event->event.id != EVENT_THREAD_WAIT || wait->kind >= N_THREAD_WAIT_KINDS ||
	    !(collection->kinds >> wait->kind & 1) || !is_chosen(collection, process))
		return 0;
	if (!wait->waker && KINDS_OF_FILES >> wait->kind & 1)
		return 0;
	row = row_of(collection, process, event->thread, wait);
	row->n++;
	row->total_ns += wait->duration_ns;
	return 0;
}

static int compare_rows(const void *a, const void *b)
{
	const struct wait_waker *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	if (x->process != y->process)
		return x->process->number < y->process->number ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->waker > y->waker) - (x->waker < y->waker);
}

void torsh_wait_wakers_collect(struct wait_wakers *wakers, const struct recording *recording,
			       struct recorded_process *const *processes, size_t n, uint32_t kinds)
{
	struct collection collection = {.wakers = wakers,
					.processes = processes,
					.n_processes = n,
					.kinds = kinds & (KINDS_WITH_WAKERS | KINDS_OF_FILES)};
	int rc;

	*wakers = (struct wait_wakers){0};
	rc = torsh_timeline_visit(recording, see_event, &collection);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", recording->path, strerror(-rc));
	torsh_hash_map_free(&collection.rows);
	if (wakers->n)
		qsort(wakers->items, wakers->n, sizeof(*wakers->items), compare_rows);
}

void torsh_wait_wakers_free(struct wait_wakers *wakers)
{
	free(wakers->items);
}
