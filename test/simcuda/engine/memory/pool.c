/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Pools of a device's memory. */
#include "test/simcuda/engine/memory/pool.h"

#include <stdlib.h>

#include "test/simcuda/engine/device.h"
#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/memory/graph_memory.h"
#include "test/simcuda/engine/result.h"

static struct sim_pool *pools;

struct sim_pool *sim_pool_create(struct sim_device *device)
{
	struct sim_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		abort();
	pool->device = device;
	pool->next = pools;
	pools = pool;
	return pool;
}

static void trim_locked(struct sim_pool *pool, uint64_t keep_bytes)
{
	while (pool->cached.n && pool->reserved_bytes > keep_bytes) {
		struct sim_extent part = pool->cached.parts[pool->cached.n - 1];
		uint64_t offset, excess = pool->reserved_bytes - keep_bytes;
		uint64_t bytes = part.bytes <= excess
					 ? part.bytes
					 : (excess + SIM_ALIGNMENT - 1) & -(uint64_t)SIM_ALIGNMENT;

		/* The part's end: what is left of it stays one part. */
		pool->cached.n--;
		pool->cached.free_bytes -= part.bytes;
		if (bytes < part.bytes)
			sim_extents_give(&pool->cached, part.offset, part.bytes - bytes);
		offset = part.offset + part.bytes - bytes;
		pool->reserved_bytes -= bytes;
		sim_memory_discard(pool->device, offset, bytes);
		sim_extents_give(&pool->device->free_memory, offset, bytes);
	}
}

void sim_pool_trim(struct sim_pool *pool, uint64_t keep_bytes)
{
	sim_lock();
	trim_locked(pool, keep_bytes);
	sim_unlock();
}

void sim_pool_trim_all(struct sim_device *device)
{
	sim_lock();
	for (struct sim_pool *pool = pools; pool; pool = pool->next)
		if (pool->device == device)
			trim_locked(pool, pool->threshold_bytes);
	sim_unlock();
}

void sim_pool_destroy(struct sim_pool *pool)
{
	struct sim_pool **link = &pools;

	trim_locked(pool, 0);
	while (*link && *link != pool)
		link = &(*link)->next;
	if (*link)
		*link = pool->next;
	if (pool->device->current_pool == pool)
		pool->device->current_pool = pool->device->default_pool;
	/* The struct stays: memory that is still in use refers to it. */
}

bool sim_pool_reserve(struct sim_pool *pool, uint64_t bytes, uint64_t *offset)
{
	if (sim_extents_take(&pool->cached, bytes, SIM_ALIGNMENT, offset))
		return true;
	if (!sim_extents_take(&pool->device->free_memory, bytes, SIM_ALIGNMENT, offset)) {
		trim_locked(pool, 0);
		if (!sim_extents_take(&pool->device->free_memory, bytes, SIM_ALIGNMENT, offset))
			return false;
	}
	pool->reserved_bytes += bytes;
	if (pool->reserved_bytes > pool->reserved_high_bytes)
		pool->reserved_high_bytes = pool->reserved_bytes;
	return true;
}

int sim_pool_alloc(struct sim_pool *pool, struct sim_stream *stream, size_t bytes,
		   uint64_t *address)
{
	uint64_t offset, taken = (bytes + SIM_ALIGNMENT - 1) & -(uint64_t)SIM_ALIGNMENT;

	if (!bytes)
		return SIM_INVALID_VALUE;
	sim_lock();
	if (taken < bytes || !sim_pool_reserve(pool, taken, &offset)) {
		int result = sim_memory_refuse(pool->device, bytes);

		sim_unlock();
		return result;
	}
	pool->used_bytes += taken;
	if (pool->used_bytes > pool->used_high_bytes)
		pool->used_high_bytes = pool->used_bytes;
	struct sim_range range = {
		.base = pool->device->memory_base + offset,
		.bytes = bytes,
		.bytes_at = pool->device->memory_at + offset,
		.kind = SIM_MEMORY_DEVICE,
		.device = pool->device->ordinal,
		.context = stream->context->id,
		.pool = pool,
		.offset = offset,
	};
	sim_memory_insert(&range);
	sim_memory_report(&range, false, (struct sim_memory_from){stream->id, true});
	sim_unlock();
	*address = range.base;
	return SIM_SUCCESS;
}

int sim_pool_free(uint64_t address, struct sim_stream *stream)
{
	struct sim_work work = {.kind = SIM_RELEASE, .address = address};
	struct sim_range range;

	sim_lock();
	if (sim_memory_find(address, &range) && range.is_of_graph) {
		bool is_given_back =
			sim_graph_memory_end(address, (struct sim_memory_from){stream->id, true});

		sim_unlock();
		return is_given_back ? SIM_SUCCESS : SIM_INVALID_VALUE;
	}
	bool is_ours = sim_memory_find(address, &range) && range.base == address &&
		       range.kind == SIM_MEMORY_DEVICE && !range.is_mapping &&
		       !range.is_freed_later;
	if (is_ours) {
		sim_memory_remove(address, &range);
		range.is_freed_later = true;
		sim_memory_insert(&range);
		sim_memory_report(&range, true, (struct sim_memory_from){stream->id, true});
	}
	sim_unlock();
	return is_ours ? sim_stream_submit(stream, &work, NULL) : SIM_INVALID_VALUE;
}

void sim_pool_take_back(const struct sim_range *range)
{
	uint64_t taken = (range->bytes + SIM_ALIGNMENT - 1) & -(uint64_t)SIM_ALIGNMENT;

	range->pool->used_bytes -= taken;
	sim_extents_give(&range->pool->cached, range->offset, taken);
}

void sim_pool_release(uint64_t address)
{
	struct sim_range range;

	/* What a graph has keeps its address, and was given back when the graph was launched. */
	if (!sim_memory_find(address, &range) || range.is_of_graph ||
	    !sim_memory_remove(address, &range))
		return;
	if (range.pool) {
		sim_pool_take_back(&range);
	} else {
		uint64_t taken = (range.bytes + SIM_ALIGNMENT - 1) & -(uint64_t)SIM_ALIGNMENT;

		sim_extents_give(&sim_device(range.device)->free_memory, range.offset, taken);
	}
}

void sim_pool_describe(const struct sim_pool *pool, struct sim_memory_event *event)
{
	event->pool = (uint64_t)(uintptr_t)pool;
	event->pool_used_bytes = pool->used_bytes;
	event->pool_reserved_bytes = pool->reserved_bytes;
	event->pool_threshold = pool->threshold_bytes;
}
