/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/calls/paused_events.h"

#include <stddef.h>

enum begun_kind { BEGUN_RANGE, BEGUN_TENSOR, BEGUN_BLOCK, BEGUN_MAPPING, BEGUN_PHYSICAL };

struct begun_key {
	uint64_t id; /* number or address */
	uint32_t kind; /* enum begun_kind */
	uint32_t device; /* of a tensor */
};

/* A mapping has the addresses of a reservation, and a handle has none. */
static uint32_t kind_of_block(uint32_t kind)
{
	return kind == BLOCK_PHYSICAL  ? BEGUN_PHYSICAL
	       : kind == BLOCK_MAPPING ? BEGUN_MAPPING
				       : BEGUN_BLOCK;
}

bool torsh_paused_events_begin_ns(const struct event *event, uint64_t *begin_ns)
{
#define BEGIN_OF(NAME, name)                   \
	case EVENT_##NAME:                     \
		*begin_ns = event->name.begin; \
		return true;
	switch (event->id) {
		BEGIN_OF(PYTHON_GC, python_gc)
		BEGIN_OF(DEFERRED, deferred)
		BEGIN_OF(LAUNCH, launch)
		BEGIN_OF(KERNEL, kernel)
		BEGIN_OF(COPY, copy)
		BEGIN_OF(MEMSET, memset)
		BEGIN_OF(DEVICE_WAIT, device_wait)
		BEGIN_OF(DEVICE_OVERHEAD, device_overhead)
		BEGIN_OF(DEVICE_CALL, device_call)
		BEGIN_OF(SUBMISSION, submission)
		BEGIN_OF(COUNTER_SAMPLE, counter_sample)
	default:
		return false;
	}
#undef BEGIN_OF
}

/* Returns false if the event neither begins nor ends anything that is looked up. */
static bool key_of(const struct event *event, struct begun_key *key, bool *is_end)
{
	*is_end = event->id == EVENT_RANGE_END || event->id == EVENT_DEVICE_FREE ||
		  (event->id == EVENT_TENSOR && event->tensor.is_free);
	switch (event->id) {
	case EVENT_RANGE_START:
		*key = (struct begun_key){.id = event->range_start.range, .kind = BEGUN_RANGE};
		return true;
	case EVENT_RANGE_END:
		*key = (struct begun_key){.id = event->range_end.range, .kind = BEGUN_RANGE};
		return true;
	case EVENT_TENSOR:
		*key = (struct begun_key){.id = event->tensor.address,
					  .kind = BEGUN_TENSOR,
					  .device = event->tensor.device};
		return true;
	case EVENT_DEVICE_ALLOC:
		*key = (struct begun_key){.id = event->device_alloc.address,
					  .kind = kind_of_block(event->device_alloc.kind)};
		return true;
	case EVENT_DEVICE_FREE:
		*key = (struct begun_key){.id = event->device_free.address,
					  .kind = kind_of_block(event->device_free.kind)};
		return true;
	default:
		return false;
	}
}

bool torsh_paused_events_take(struct paused_events *paused, const struct event *event,
			      bool is_paused)
{
	struct begun_key key;
	bool is_end, was_begun;
	size_t unused;

	if (event->id == EVENT_MARK || event->id == EVENT_VALUE)
		return is_paused;
	if (!key_of(event, &key, &is_end))
		return false;
	was_begun = torsh_hash_map_remove(&paused->begun, &key, sizeof(key), &unused);
	if (is_end)
		return was_begun;
	if (is_paused)
		torsh_hash_map_put(&paused->begun, &key, sizeof(key), 0);
	return is_paused;
}

void torsh_paused_events_destroy(struct paused_events *paused)
{
	torsh_hash_map_free(&paused->begun);
}
