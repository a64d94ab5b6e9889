/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/calls/thread_waits.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"

void torsh_thread_waits_free(struct thread_waits *waits)
{
	torsh_hash_map_free(&waits->by_key);
	torsh_hash_map_free(&waits->shorter_by_key);
	free(waits->items);
	free(waits->shorter);
	*waits = (struct thread_waits){0};
}

static struct thread_wait *item_of(struct thread_waits *waits, struct thread_wait_key key)
{
	size_t i = torsh_hash_map_put(&waits->by_key, &key, sizeof(key), waits->n)->value;

	if (i < waits->n)
		return &waits->items[i];
	waits->items = torsh_array_reserve(waits->items, waits->n, &waits->capacity,
					   sizeof(*waits->items));
	waits->items[waits->n] = (struct thread_wait){.key = key};
	return &waits->items[waits->n++];
}

void torsh_thread_waits_take(struct thread_waits *waits, struct thread_wait_key key,
			     uint64_t duration_ns, bool is_unfinished)
{
	struct thread_wait *item;

	if (waits->n >= THREAD_WAITS_MAX && !torsh_hash_map_find(&waits->by_key, &key, sizeof(key)))
		key.stack = key.operator= 0;
	item = item_of(waits, key);
	waits->n_taken++;
	item->n++;
	item->n_unfinished += is_unfinished;
	item->total_ns += duration_ns;
	if (duration_ns > item->longest_ns)
		item->longest_ns = duration_ns;
}

void torsh_thread_waits_shorter(struct thread_waits *waits, uint32_t thread, uint32_t kind,
				uint64_t n, uint64_t total_ns)
{
	const uint32_t key[] = {thread, kind};
	size_t i = torsh_hash_map_put(&waits->shorter_by_key, key, sizeof(key), waits->n_shorter)
			   ->value;

	if (i == waits->n_shorter) {
		waits->shorter =
			torsh_array_reserve(waits->shorter, waits->n_shorter,
					    &waits->shorter_capacity, sizeof(*waits->shorter));
		waits->shorter[waits->n_shorter++] =
			(struct shorter_waits){.thread = thread, .kind = kind};
	}
	waits->n_taken++;
	waits->shorter[i].n += n;
	waits->shorter[i].total_ns += total_ns;
}
