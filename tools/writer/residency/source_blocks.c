/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/residency/source_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "tools/writer/input/target.h"

/* What a block takes here, with what sorting takes. */
#define BLOCK_BYTES 64u

bool torsh_is_of_glibc(const char *allocator)
{
	return strstr(allocator, "/libc.so") || strstr(allocator, "/libc-");
}

static const char *why_undivided(const struct target *target, uint64_t left_bytes)
{
	const struct heap *heap = &target->state.heap;

	if (heap->sampling.rate)
		return "blocks are sampled";
	if (heap->small_site)
		return "memory was short, and small blocks were counted only";
	if (heap->was_paused)
		return "recording was paused: blocks from then are not known";
	if (!heap->allocs)
		return "no block was recorded";
	if (heap->live.n_blocks * BLOCK_BYTES > left_bytes / 4)
		return "there are too many blocks for the writer's memory";
	return NULL;
}

static void add_own(struct resident_blocks *blocks, const struct target *target)
{
	struct live_block block;
	uint64_t at = 0;

	while (torsh_live_next(&target->state.heap.live, &at, &block))
		torsh_resident_blocks_add(blocks, block.address, block.size, block.usable,
					  target->state.heap.sites[block.site].stack);
}

/* Returns whether a block that the process allocated itself is where the chunk is. */
static bool is_taken(const struct resident_blocks *own, const struct resident_chunk *chunk)
{
	uint32_t i = torsh_resident_blocks_from(own, chunk->begin);

	return i < own->index.n && torsh_resident_blocks_at(own, i).begin < chunk->chunk_end;
}

/* The parent's blocks from before the fork, as far as the fork has not given their memory out. */
static void add_inherited(struct resident_blocks *blocks, const struct account_source *source)
{
	const struct target *parent = source->parent;
	const struct clock_conversion *clock = &parent->state.clock;
	uint64_t fork_ns = source->target->state.clock.start_ns;
	struct resident_blocks own = {0};
	struct live_block block;
	uint64_t at = 0;

	torsh_resident_blocks_create(&own, blocks->is_glibc);
	add_own(&own, source->target);
	torsh_resident_blocks_end(&own);
	while (torsh_live_next(&parent->state.heap.live, &at, &block)) {
		uint64_t stamp = parent->state.heap.first_stamp + block.stamp;
		struct resident_chunk chunk = {
			.begin = block.address,
			.chunk_end = block.address + (block.size ? block.size : 1),
		};

		if (torsh_clock_to_ns(clock, stamp) <= fork_ns && !is_taken(&own, &chunk))
			torsh_resident_blocks_add(blocks, block.address, block.size, block.usable,
						  parent->state.heap.sites[block.site].stack);
	}
	torsh_resident_blocks_destroy(&own);
}

const char *torsh_source_blocks_collect(struct resident_blocks *blocks,
					const struct account_source *source)
{
	const char *why = why_undivided(source->target, source->left_bytes);
	size_t n;
	char *allocator =
		torsh_view_text(&source->target->view, source->target->start.allocator, -1, &n);

	torsh_resident_blocks_create(blocks, torsh_is_of_glibc(allocator));
	free(allocator);
	if (!why) {
		add_own(blocks, source->target);
		if (source->parent && !why_undivided(source->parent, source->left_bytes))
			add_inherited(blocks, source);
	}
	torsh_resident_blocks_end(blocks);
	return why;
}
