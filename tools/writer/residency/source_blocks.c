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

/* Add the blocks of an ancestor from before the fork, as far as their memory was not given out. */
static void add_inherited(struct resident_blocks *blocks, const struct target *ancestor,
			  uint64_t fork_ns)
{
	const struct heap *heap = &ancestor->state.heap;
	struct resident_blocks more;
	struct live_block block;
	uint64_t at = 0;

	torsh_resident_blocks_create(&more, blocks->is_glibc);
	while (torsh_live_next(&heap->live, &at, &block)) {
		uint64_t at_ns =
			torsh_clock_to_ns(&ancestor->state.clock, heap->first_stamp + block.stamp);
		struct resident_chunk chunk = {
			.begin = block.address,
			.chunk_end = block.address + (block.size ? block.size : 1),
		};

		if (at_ns <= fork_ns && !is_taken(blocks, &chunk))
			torsh_resident_blocks_add(&more, block.address, block.size, block.usable,
						  heap->sites[block.site].stack);
	}
	torsh_resident_blocks_join(blocks, &more);
	torsh_resident_blocks_destroy(&more);
}

static const char *collect(struct resident_blocks *blocks, const struct account_source *source)
{
	const struct target *target = source->target;
	const char *why = why_undivided(target, source->left_bytes);
	bool has_blocks = target->state.heap.allocs;

	if (why)
		return why;
	add_own(blocks, target);
	torsh_resident_blocks_end(blocks);
	for (uint32_t i = 0; i < source->n_ancestors; i++) {
		const struct target *ancestor = source->ancestors[i];

		if (why_undivided(ancestor, source->left_bytes))
			break;
		has_blocks |= ancestor->state.heap.allocs != 0;
		add_inherited(blocks, ancestor, target->state.clock.start_ns);
		target = ancestor;
	}
	return has_blocks ? NULL : "no block was recorded";
}

const char *torsh_source_blocks_collect(struct resident_blocks *blocks,
					const struct account_source *source)
{
	size_t n;
	char *allocator =
		torsh_view_text(&source->target->view, source->target->start.allocator, -1, &n);

	torsh_resident_blocks_create(blocks, torsh_is_of_glibc(allocator));
	free(allocator);
	return collect(blocks, source);
}
