/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The live blocks of device memory, their names and the scopes that they count in. */
#include "tools/device/memory/device_block_table.h"

#include "tools/base/containers/array.h"

#define SCOPES_MAX 256u /* more devices than any machine has: larger numbers share one scope */

_Static_assert(N_SPACES ==
		       sizeof(((struct device_blocks *)0)->ranges) / sizeof(struct address_ranges),
	       "a set of ranges for each space");

const struct address_range *torsh_device_blocks_find(const struct device_blocks *blocks,
						     enum space space, uint64_t start, uint64_t end)
{
	const struct address_range *range =
		torsh_address_ranges_above(&blocks->ranges[space], start);

	return range && (range->start < end || range->start <= start) ? range : NULL;
}

void torsh_device_blocks_add_range(struct device_blocks *blocks, enum space space,
				   const struct address_range *range)
{
	torsh_address_ranges_add(&blocks->ranges[space], range->start, range->end, range->owner);
}

enum space torsh_device_space(uint32_t kind)
{
	if (kind == BLOCK_PHYSICAL)
		return SPACE_HANDLE;
	return kind == BLOCK_ARRAY ? SPACE_ARRAY : SPACE_ADDRESS;
}

static enum device_scope_kind scope_kind(uint32_t kind, uint32_t flags)
{
	if (flags & BLOCK_IS_IMPORTED)
		return SCOPE_IMPORTED;
	switch (kind) {
	case BLOCK_MANAGED:
		return SCOPE_MANAGED;
	case BLOCK_PINNED:
		return SCOPE_PINNED;
	case BLOCK_REGISTERED:
		return SCOPE_REGISTERED;
	default:
		return flags & BLOCK_IS_OF_HOST ? SCOPE_PINNED : SCOPE_CUDA;
	}
}

static uint32_t find_scope(struct device_blocks *blocks, enum device_scope_kind kind,
			   uint32_t device)
{
	if (kind != SCOPE_CUDA)
		device = DEVICE_NOT_KNOWN;
	for (size_t i = 0; i < blocks->n_scopes; i++) {
		if (blocks->scopes[i].kind == kind && blocks->scopes[i].device == device)
			return (uint32_t)i;
	}
	if (blocks->n_scopes >= SCOPES_MAX && device != DEVICE_NOT_KNOWN)
		return find_scope(blocks, kind, DEVICE_NOT_KNOWN);
	blocks->scopes = torsh_array_reserve(blocks->scopes, blocks->n_scopes, &blocks->scopes_room,
					     sizeof(*blocks->scopes));
	blocks->scopes[blocks->n_scopes] = (struct device_scope){.kind = kind, .device = device};
	return (uint32_t)blocks->n_scopes++;
}

uint32_t torsh_device_blocks_scope(struct device_blocks *blocks, uint32_t kind, uint32_t flags,
				   uint32_t device)
{
	return find_scope(blocks, scope_kind(kind, flags), device);
}

/* sign: 1 adds the block, -1 removes it. */
static void count_block(struct device_blocks *blocks, const struct device_block *block, int sign)
{
	struct device_scope *scope = &blocks->scopes[block->scope];

	scope->n += (uint64_t)(int64_t)sign;
	scope->bytes += sign > 0 ? block->bytes : -block->bytes;
	scope->tensor_bytes += sign > 0 ? block->tensor_bytes : -block->tensor_bytes;
	if (block->flags & BLOCK_IS_UNSIZED)
		scope->n_unsized += (uint64_t)(int64_t)sign;
}

uint32_t torsh_device_blocks_number(uint32_t *unused, size_t *n_unused, size_t *n)
{
	return *n_unused ? unused[--*n_unused] : (uint32_t)(*n)++;
}

uint32_t torsh_device_blocks_put(struct device_blocks *blocks, const struct device_block *block)
{
	uint32_t number;

	blocks->blocks = torsh_array_reserve(blocks->blocks, blocks->n_blocks, &blocks->blocks_room,
					     sizeof(*blocks->blocks));
	number = torsh_device_blocks_number(blocks->free_blocks, &blocks->n_free_blocks,
					    &blocks->n_blocks);
	blocks->blocks[number] = *block;
	blocks->blocks[number].is_alive = true;
	count_block(blocks, block, 1);
	return number;
}

static void end_block(struct device_blocks *blocks, uint32_t number)
{
	struct device_block *block = &blocks->blocks[number];

	count_block(blocks, block, -1);
	block->is_alive = false;
	blocks->free_blocks =
		torsh_array_reserve(blocks->free_blocks, blocks->n_free_blocks,
				    &blocks->free_blocks_room, sizeof(*blocks->free_blocks));
	blocks->free_blocks[blocks->n_free_blocks++] = number;
}

void torsh_device_blocks_drop(struct device_blocks *blocks, enum space space,
			      const struct address_range *range)
{
	uint32_t number = range->owner;

	torsh_address_ranges_drop(&blocks->ranges[space], range);
	if (--blocks->blocks[number].n_refs == 0)
		end_block(blocks, number);
}

void torsh_device_blocks_end_overlapped(struct device_blocks *blocks, enum space space,
					uint64_t begin, uint64_t end)
{
	const struct address_range *range;

	while ((range = torsh_device_blocks_find(blocks, space, begin, end))) {
		blocks->implicit_frees++;
		torsh_device_blocks_drop(blocks, space, range);
	}
}
