/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/tables/device_sum.h"

/* Handles of physical memory are no addresses. */
struct block_key {
	uint64_t address;
	uint64_t is_physical;
};

void torsh_device_sum_destroy(struct device_sum *sum)
{
	torsh_hash_map_free(&sum->blocks);
}

static int64_t remove_block(struct device_sum *sum, uint64_t address, bool is_physical)
{
	struct block_key key = {.address = address, .is_physical = is_physical};
	size_t bytes;

	return torsh_hash_map_remove(&sum->blocks, &key, sizeof(key), &bytes) ? (int64_t)bytes : 0;
}

static int64_t add_block(struct device_sum *sum, uint64_t address, bool is_physical, uint64_t bytes)
{
	struct block_key key = {.address = address, .is_physical = is_physical};
	int64_t before = remove_block(sum, address, is_physical);

	torsh_hash_map_put(&sum->blocks, &key, sizeof(key), bytes);
	return (int64_t)bytes - before;
}

/* As torsh_device_is_joint: registered memory is in the heap, imported memory another process's. */
static bool is_counted(const struct event_device_alloc *alloc)
{
	return alloc->kind != BLOCK_REGISTERED && alloc->kind != BLOCK_MAPPING &&
	       !(alloc->flags & (BLOCK_IS_IMPORTED | BLOCK_IS_RETAINED));
}

int64_t torsh_device_sum_take(struct device_sum *sum, const struct event *event, uint32_t thread)
{
	const struct event_device_alloc *alloc = &event->device_alloc;
	const struct event_device_free *gone = &event->device_free;

	switch (event->id) {
	case EVENT_DEVICE_ALLOC:
		return is_counted(alloc) ? add_block(sum, alloc->address,
						     alloc->kind == BLOCK_PHYSICAL, alloc->bytes)
					 : 0;
	case EVENT_DEVICE_FREE:
		if (gone->kind == BLOCK_MAPPING || gone->kind == BLOCK_REGISTERED)
			return 0;
		sum->last = (struct device_freed){.address = gone->address,
						  .is_physical = gone->kind == BLOCK_PHYSICAL,
						  .thread = thread};
		sum->last.bytes = (uint64_t)remove_block(sum, gone->address, sum->last.is_physical);
		return -(int64_t)sum->last.bytes;
	case EVENT_DEVICE_FREE_FAILED:
		if (sum->last.thread != thread || !sum->last.bytes ||
		    sum->last.address != event->device_free_failed.address)
			return 0;
		return add_block(sum, sum->last.address, sum->last.is_physical, sum->last.bytes);
	default:
		return 0;
	}
}
