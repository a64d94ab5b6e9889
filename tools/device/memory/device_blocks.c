/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Takes the events about device memory: allocations, frees, frees that failed, and tensors. */
#include "tools/device/memory/device_blocks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/device/memory/device_block_table.h"

#define TENSOR_ON_CUDA 1u /* c10's DeviceType of CUDA */
#define THREADS_MAX 65536u /* each with its own latest free; further threads share entries */

/*
 * The block that a thread's latest free ended, until the thread's next event shows that the free
 * succeeded.
 */
struct device_undo {
	uint32_t kind;
	uint64_t address;
	struct undone {
		struct address_range range;
		enum space space;
		struct device_block block; /* its state before the free */
		uint32_t number;
	} * items;
	size_t n, n_room;
};

void torsh_device_blocks_create(struct device_blocks *blocks)
{
	*blocks = (struct device_blocks){0};
	for (size_t i = 0; i < N_SPACES; i++)
		torsh_address_ranges_create(&blocks->ranges[i]);
}

void torsh_device_blocks_destroy(struct device_blocks *blocks)
{
	for (size_t i = 0; i < N_SPACES; i++)
		torsh_address_ranges_destroy(&blocks->ranges[i]);
	torsh_hash_map_free(&blocks->live_tensors);
	for (size_t i = 0; i < blocks->n_undo; i++)
		free(blocks->undo[i].items);
	free(blocks->undo);
	free(blocks->free_blocks);
	free(blocks->free_tensors);
	free(blocks->is_managed);
	free(blocks->left);
	free(blocks->tensors);
	free(blocks->blocks);
	free(blocks->scopes);
	*blocks = (struct device_blocks){0};
}

/* ---- what comes ------------------------------------------------------------------------------ */

static uint64_t end_of(uint64_t address, uint64_t bytes)
{
	uint64_t end = address + (bytes ? bytes : 1);

	return end > address ? end : UINT64_MAX;
}

/* Add a name for a physical block, if its handle is known. */
static void add_reference(struct device_blocks *blocks, enum space space, uint64_t handle,
			  uint64_t begin, uint64_t end)
{
	const struct address_range *of_handle =
		torsh_device_blocks_find(blocks, SPACE_HANDLE, handle, handle + 1);
	struct address_range range;

	if (!of_handle)
		return;
	range = (struct address_range){.start = begin, .end = end, .owner = of_handle->owner};
	/* Before any block ends: this reference may be the only remaining one. */
	blocks->blocks[range.owner].n_refs++;
	if (space == SPACE_ADDRESS) {
		torsh_device_blocks_end_overlapped(blocks, space, begin, end);
		torsh_device_blocks_add_range(blocks, space, &range);
	} else {
		blocks->blocks[range.owner].n_retained++;
	}
}

static void take_alloc(struct device_blocks *blocks, const struct event_device_alloc *alloc,
		       const struct device_origin *origin)
{
	enum space space = torsh_device_space(alloc->kind);
	uint64_t bytes = space == SPACE_HANDLE ? 0 : alloc->bytes,
		 end = end_of(alloc->address, bytes);
	struct device_block block = {
		.kind = (uint8_t)alloc->kind,
		.flags = (uint8_t)alloc->flags,
		.context = alloc->context,
		.n_refs = 1,
		.address = alloc->address,
		.bytes = alloc->bytes,
		.ordinal = blocks->n_ordinals,
		.origin = *origin,
	};

	if (!alloc->address || alloc->kind >= BLOCK_CONTEXT)
		return;
	if (alloc->kind == BLOCK_MAPPING || alloc->flags & BLOCK_IS_RETAINED) {
		uint64_t handle = alloc->kind == BLOCK_MAPPING ? alloc->handle : alloc->address;

		add_reference(blocks, space, handle, alloc->address, end);
		return;
	}
	torsh_device_blocks_end_overlapped(blocks, space, alloc->address, end);
	block.scope = torsh_device_blocks_scope(blocks, alloc->kind, alloc->flags, alloc->device);
	blocks->scopes[block.scope].allocs++;
	blocks->is_managed =
		torsh_array_reserve(blocks->is_managed, blocks->n_ordinals, &blocks->managed_room,
				    sizeof(*blocks->is_managed));
	blocks->is_managed[blocks->n_ordinals++] = false;
	torsh_device_blocks_add_range(
		blocks, space,
		&(struct address_range){.start = alloc->address,
					.end = end,
					.owner = torsh_device_blocks_put(blocks, &block)});
}

/* ---- what goes ------------------------------------------------------------------------------- */

static struct device_undo *begin_undo(struct device_blocks *blocks, uint32_t thread,
				      const struct event_device_free *freed)
{
	thread %= THREADS_MAX;
	while (blocks->n_undo <= thread) {
		blocks->undo = torsh_array_reserve(blocks->undo, blocks->n_undo, &blocks->undo_room,
						   sizeof(*blocks->undo));
		blocks->undo[blocks->n_undo++] = (struct device_undo){0};
	}
	blocks->undo[thread].kind = freed->kind;
	blocks->undo[thread].address = freed->address;
	blocks->undo[thread].n = 0;
	return &blocks->undo[thread];
}

static void keep_undo(struct device_undo *undo, enum space space, const struct address_range *range,
		      const struct device_block *block)
{
	undo->items =
		torsh_array_reserve(undo->items, undo->n, &undo->n_room, sizeof(*undo->items));
	undo->items[undo->n++] = (struct undone){
		.range = *range, .space = space, .block = *block, .number = range->owner};
}

static void free_range(struct device_blocks *blocks, struct device_undo *undo, enum space space,
		       const struct address_range *range)
{
	struct device_block *block = &blocks->blocks[range->owner];

	keep_undo(undo, space, range, block);
	blocks->scopes[block->scope].frees += block->n_refs == 1;
	if (space == SPACE_HANDLE && block->n_retained) {
		block->n_retained--;
		block->n_refs--;
		return;
	}
	torsh_device_blocks_drop(blocks, space, range);
}

static void end_context(struct device_blocks *blocks, uint32_t context)
{
	for (size_t i = 0; i < blocks->n_blocks; i++) {
		const struct device_block *block = &blocks->blocks[i];
		enum space space = torsh_device_space(block->kind);
		const struct address_range *range;

		if (!block->is_alive || block->context != context || space == SPACE_HANDLE)
			continue;
		range = torsh_device_blocks_find(blocks, space, block->address, block->address + 1);
		blocks->left = torsh_array_reserve(blocks->left, blocks->n_left, &blocks->left_room,
						   sizeof(*blocks->left));
		blocks->left[blocks->n_left++] = *block;
		if (range)
			torsh_device_blocks_drop(blocks, space, range);
	}
}

static void take_free(struct device_blocks *blocks, const struct event_device_free *freed,
		      uint32_t thread)
{
	enum space space = torsh_device_space(freed->kind);
	uint64_t end = end_of(freed->address, freed->kind == BLOCK_MAPPING ? freed->bytes : 0);
	struct device_undo *undo;
	const struct address_range *range;

	if (freed->kind == BLOCK_CONTEXT) {
		end_context(blocks, freed->context);
		return;
	}
	undo = begin_undo(blocks, thread, freed);
	range = torsh_device_blocks_find(blocks, space, freed->address, end);
	if (!range || (freed->kind != BLOCK_MAPPING && range->start != freed->address)) {
		blocks->unknown_frees++;
		return;
	}
	do {
		free_range(blocks, undo, space, range);
	} while (freed->kind == BLOCK_MAPPING &&
		 (range = torsh_device_blocks_find(blocks, space, freed->address, end)));
}

static void restore(struct device_blocks *blocks, const struct undone *undone)
{
	const struct device_block *now = &blocks->blocks[undone->number];
	struct address_range range = undone->range;

	bool is_same = now->is_alive && now->ordinal == undone->block.ordinal;

	if (torsh_device_blocks_find(blocks, undone->space, range.start, range.end)) {
		/*
		 * Only a handle that is still retained can be restored; otherwise the recording is
		 * damaged.
		 */
		if (is_same && undone->space == SPACE_HANDLE) {
			blocks->blocks[undone->number].n_refs++;
			blocks->blocks[undone->number].n_retained++;
		}
		return;
	}
	if (is_same) {
		blocks->blocks[undone->number].n_refs++;
	} else {
		range.owner = torsh_device_blocks_put(blocks, &undone->block);
		blocks->blocks[range.owner].n_refs = 1;
		blocks->scopes[undone->block.scope].frees--;
	}
	torsh_device_blocks_add_range(blocks, undone->space, &range);
}

/* The thread's latest free failed. */
static void undo_free(struct device_blocks *blocks, uint32_t kind, uint64_t address,
		      uint32_t thread)
{
	struct device_undo *undo =
		thread % THREADS_MAX < blocks->n_undo ? &blocks->undo[thread % THREADS_MAX] : NULL;

	if (!undo || undo->kind != kind || undo->address != address)
		return;
	if (!undo->n && blocks->unknown_frees)
		blocks->unknown_frees--;
	for (size_t i = 0; i < undo->n; i++)
		restore(blocks, &undo->items[i]);
	*undo = (struct device_undo){.items = undo->items, .n_room = undo->n_room};
}

static void take_failure(struct device_blocks *blocks,
			 const struct event_device_free_failed *failed, uint32_t thread)
{
	blocks->failed_frees++;
	undo_free(blocks, failed->kind, failed->address, thread);
}

/* ---- tensors --------------------------------------------------------------------------------- */

/* Count the tensor's bytes in the blocks that it overlaps. Returns their number of bytes. */
static uint64_t count_inside(struct device_blocks *blocks, const struct device_tensor *tensor,
			     int sign)
{
	uint64_t at = tensor->address, end = end_of(at, tensor->bytes), inside = 0;
	const struct address_range *range;

	while (at < end && (range = torsh_device_blocks_find(blocks, SPACE_ADDRESS, at, at + 1))) {
		struct device_block *block = &blocks->blocks[range->owner];
		uint64_t part = (range->end < end ? range->end : end) - at, change;

		/* The block may be newer than the tensor. */
		if (sign < 0 && part > block->tensor_bytes)
			part = block->tensor_bytes;
		change = sign > 0 ? part : -part;
		if (sign > 0)
			blocks->is_managed[block->ordinal] = true;
		block->tensor_bytes += change;
		blocks->scopes[block->scope].tensor_bytes += change;
		inside += part;
		at = range->end;
	}
	return tensor->bytes ? inside : 0;
}

static void end_tensor(struct device_blocks *blocks, uint32_t number)
{
	struct device_tensor *tensor = &blocks->tensors[number];

	count_inside(blocks, tensor, -1);
	tensor->is_alive = false;
	blocks->free_tensors =
		torsh_array_reserve(blocks->free_tensors, blocks->n_free_tensors,
				    &blocks->free_tensors_room, sizeof(*blocks->free_tensors));
	blocks->free_tensors[blocks->n_free_tensors++] = number;
}

static void take_tensor(struct device_blocks *blocks, const struct event_tensor *event,
			const struct device_origin *origin)
{
	const uint64_t address = event->address;
	struct device_tensor *tensor;
	uint32_t number;
	size_t older;

	if (!address || event->device >> 8 != TENSOR_ON_CUDA)
		return;
	if (torsh_hash_map_remove(&blocks->live_tensors, &address, sizeof(address), &older))
		end_tensor(blocks, (uint32_t)older);
	if (event->is_free || !event->bytes)
		return;
	blocks->tensors = torsh_array_reserve(blocks->tensors, blocks->n_tensors,
					      &blocks->tensors_room, sizeof(*blocks->tensors));
	number = torsh_device_blocks_number(blocks->free_tensors, &blocks->n_free_tensors,
					    &blocks->n_tensors);
	torsh_hash_map_put(&blocks->live_tensors, &address, sizeof(address), number);
	tensor = &blocks->tensors[number];
	*tensor = (struct device_tensor){
		.is_alive = true, .address = address, .bytes = event->bytes, .origin = *origin};
	tensor->inside_bytes = count_inside(blocks, tensor, 1);
}

/*
 * ----------------------------------------------------------------------------------------------
 */

bool torsh_device_blocks_take(struct device_blocks *blocks, const struct event *event,
			      const struct device_origin *origin)
{
	switch (event->id) {
	case EVENT_DEVICE_ALLOC:
		take_alloc(blocks, &event->device_alloc, origin);
		break;
	case EVENT_DEVICE_FREE:
		take_free(blocks, &event->device_free, origin->thread);
		break;
	case EVENT_DEVICE_FREE_FAILED:
		take_failure(blocks, &event->device_free_failed, origin->thread);
		break;
	case EVENT_GRAPH_MEMORY:
		/* The call created a node of a graph; a launch of the graph frees the memory. */
		if (event->graph_memory.is_told)
			undo_free(blocks, BLOCK_DEVICE, event->graph_memory.address,
				  origin->thread);
		break;
	case EVENT_TENSOR:
		take_tensor(blocks, &event->tensor, origin);
		break;
	default:
		return false;
	}
	blocks->n_changes++;
	return true;
}

const struct device_block *torsh_device_blocks_at(const struct device_blocks *blocks,
						  uint64_t address)
{
	const struct address_range *range =
		torsh_device_blocks_find(blocks, SPACE_ADDRESS, address, address + 1);

	return range ? &blocks->blocks[range->owner] : NULL;
}

const char *torsh_device_scope_name(const struct device_scope *scope, char *out)
{
	static const char *const names[] = {
#define SCOPE(NAME, name) #name,
		DEVICE_SCOPES
#undef SCOPE
	};

	if (scope->kind != SCOPE_CUDA)
		snprintf(out, DEVICE_SCOPE_NAME_BYTES, "%s", names[scope->kind]);
	else if (scope->device == DEVICE_NOT_KNOWN)
		snprintf(out, DEVICE_SCOPE_NAME_BYTES, "cuda:?");
	else
		snprintf(out, DEVICE_SCOPE_NAME_BYTES, "cuda:%" PRIu32, scope->device);
	return out;
}
