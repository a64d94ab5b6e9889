/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Memory that nodes of graphs get and give back. */
#include "test/simcuda/engine/memory/graph_memory.h"

#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/memory/pool.h"
#include "test/simcuda/engine/result.h"

static uint64_t taken_bytes(uint64_t bytes)
{
	return (bytes + SIM_ALIGNMENT - 1) & -(uint64_t)SIM_ALIGNMENT;
}

static bool find(uint64_t address, struct sim_range *range)
{
	return sim_memory_find(address, range) && range->base == address && range->is_of_graph;
}

int sim_graph_memory_reserve(struct sim_device *device, uint32_t context,
			     const struct sim_graph *graph, size_t bytes, uint64_t *address)
{
	uint64_t offset;
	bool has_room;

	if (!bytes)
		return SIM_INVALID_VALUE;
	sim_lock();
	has_room = taken_bytes(bytes) >= bytes &&
		   sim_pool_reserve(device->graph_pool, taken_bytes(bytes), &offset);
	if (has_room) {
		*address = device->memory_base + offset;
		sim_memory_insert(&(struct sim_range){
			.base = *address,
			.bytes = bytes,
			.bytes_at = device->memory_at + offset,
			.kind = SIM_MEMORY_DEVICE,
			.device = device->ordinal,
			.context = context,
			.pool = device->graph_pool,
			.offset = offset,
			.is_of_graph = true,
			.owner = graph->id,
			.n_holders = 1,
		});
	} else {
		sim_memory_refuse(device, bytes);
	}
	sim_unlock();
	return has_room ? SIM_SUCCESS : SIM_OUT_OF_MEMORY;
}

void sim_graph_memory_hold(uint64_t address, int by)
{
	struct sim_range range;

	sim_lock();
	if (find(address, &range)) {
		range.n_holders += by;
		sim_memory_update(&range);
	}
	sim_unlock();
}

bool sim_graph_memory_free_in(const struct sim_graph *graph, uint64_t address)
{
	struct sim_range range;
	bool is_allowed;

	sim_lock();
	is_allowed = find(address, &range) && !range.is_freed_by_owner;
	if (is_allowed && range.owner == graph->id) {
		is_allowed = !range.is_freed_by_other;
		range.is_freed_by_owner = true;
	} else if (is_allowed) {
		range.is_freed_by_other = true;
	}
	if (is_allowed)
		sim_memory_update(&range);
	sim_unlock();
	return is_allowed;
}

static void begin(uint64_t address, struct sim_memory_from from)
{
	struct sim_range range;

	if (!find(address, &range))
		return;
	range.is_alive = true;
	range.pool->used_bytes += taken_bytes(range.bytes);
	if (range.pool->used_bytes > range.pool->used_high_bytes)
		range.pool->used_high_bytes = range.pool->used_bytes;
	sim_memory_update(&range);
	sim_memory_report(&range, false, from);
}

bool sim_graph_memory_end(uint64_t address, struct sim_memory_from from)
{
	struct sim_range range;

	if (!find(address, &range) || !range.is_alive)
		return false;
	range.is_alive = false;
	range.pool->used_bytes -= taken_bytes(range.bytes);
	sim_memory_update(&range);
	sim_memory_report(&range, true, from);
	return true;
}

static bool is_alive(uint64_t address)
{
	struct sim_range range;

	return find(address, &range) && range.is_alive;
}

static bool gets(const struct sim_graph *graph, uint64_t address)
{
	for (size_t i = 0; i < graph->n_nodes; i++)
		if (graph->nodes[i]->work.kind == SIM_ALLOC &&
		    graph->nodes[i]->work.address == address)
			return true;
	return false;
}

/* All that has to hold before anything is done. */
static bool can_launch(const struct sim_exec *exec)
{
	for (size_t i = 0; i < exec->graph->n_nodes; i++) {
		const struct sim_work *work = &exec->graph->nodes[i]->work;

		if (work->kind == SIM_ALLOC && is_alive(work->address) && !exec->frees_at_launch)
			return false;
		if (work->kind == SIM_RELEASE && !is_alive(work->address) &&
		    !gets(exec->graph, work->address))
			return false;
	}
	return true;
}

int sim_graph_memory_launch(const struct sim_exec *exec, const struct sim_stream *stream)
{
	const struct sim_graph *graph = exec->graph;
	const struct sim_memory_from from = {stream->id, true};

	if (!graph->has_memory)
		return SIM_SUCCESS;
	if (!can_launch(exec))
		return SIM_INVALID_VALUE;
	for (size_t i = 0; i < graph->n_nodes; i++)
		if (graph->nodes[i]->work.kind == SIM_ALLOC)
			sim_graph_memory_end(graph->nodes[i]->work.address, from);
	for (size_t i = 0; i < graph->n_nodes; i++) {
		const struct sim_work *work = &graph->nodes[i]->work;

		if (work->kind == SIM_ALLOC)
			begin(work->address, from);
		else if (work->kind == SIM_RELEASE)
			sim_graph_memory_end(work->address, from);
	}
	return SIM_SUCCESS;
}

static void trim_range(const struct sim_range *range, void *device)
{
	struct sim_range removed;

	if (!range->is_of_graph || range->is_alive || range->n_holders ||
	    sim_device(range->device) != device)
		return;
	sim_memory_remove(range->base, &removed);
	sim_extents_give(&removed.pool->cached, removed.offset, taken_bytes(removed.bytes));
}

void sim_graph_memory_trim(struct sim_device *device)
{
	sim_lock();
	sim_memory_each(trim_range, device);
	sim_unlock();
	sim_pool_trim(device->graph_pool, 0);
}
