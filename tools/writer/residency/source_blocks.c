/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/residency/source_blocks.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"
#include "tools/writer/input/target.h"

/* What a block takes here, with what sorting takes. */
#define BLOCK_BYTES 64u
#define PIECE_BYTES (UINT64_C(64) << 10)
#define WANTED_BITS (1u << 20) /* a gigabyte of wanted pages sets one in 64 of them */

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

/* ---- inherited pages ------------------------------------------------------------------------- */

/*
 * Pages in which it matters whose blocks there are. Of inherited ones that are still shared it
 * doesn't; nearly all are in a child that was forked to do one thing.
 */
struct wanted_pages {
	struct page_runs runs; /* in order */
	uint64_t bits[WANTED_BITS / 64]; /* of the pieces of memory that they may be in */
};

static uint32_t bit_of(uint64_t piece)
{
	return (uint32_t)(piece * UINT64_C(0x9e3779b97f4a7c15) >> 32) % WANTED_BITS;
}

static bool has_bit(const struct wanted_pages *wanted, uint64_t address)
{
	uint32_t bit = bit_of(address / PIECE_BYTES);

	return wanted->bits[bit / 64] >> bit % 64 & 1;
}

static void want(struct wanted_pages *wanted, struct page_run run)
{
	struct page_runs *runs = &wanted->runs;

	/* The free bytes of a page count for the block before them. */
	run.begin = run.begin > PIECE_BYTES ? run.begin - PIECE_BYTES : 0;
	for (uint64_t piece = run.begin / PIECE_BYTES; piece <= (run.end - 1) / PIECE_BYTES;
	     piece++)
		wanted->bits[bit_of(piece) / 64] |= UINT64_C(1) << bit_of(piece) % 64;
	runs->items =
		torsh_array_reserve(runs->items, runs->n, &runs->capacity, sizeof(*runs->items));
	runs->items[runs->n++] = run;
}

static bool is_inherited(const struct page_runs *inherited, const struct page_run *run)
{
	uint32_t i = torsh_page_runs_from(inherited, run->begin);

	return i < inherited->n && inherited->items[i].begin <= run->begin &&
	       inherited->items[i].end >= run->end;
}

static void find_wanted(struct wanted_pages *wanted, const struct memory_look *look,
			const struct page_runs *inherited)
{
	for (uint32_t i = 0; i < look->runs.n; i++) {
		const struct page_run *run = &look->runs.items[i];

		if (run->end > run->begin &&
		    !(run->is_shared && inherited && is_inherited(inherited, run)))
			want(wanted, *run);
	}
}

static bool is_wanted(const struct wanted_pages *wanted, const struct resident_chunk *chunk)
{
	uint32_t i;

	if (chunk->chunk_end - chunk->begin < PIECE_BYTES && !has_bit(wanted, chunk->begin) &&
	    !has_bit(wanted, chunk->chunk_end))
		return false;
	i = torsh_page_runs_from(&wanted->runs, chunk->begin);
	return i < wanted->runs.n && wanted->runs.items[i].begin < chunk->chunk_end;
}

/* Returns whether a block that the process allocated itself is where the chunk is. */
static bool is_taken(const struct resident_blocks *own, const struct resident_chunk *chunk)
{
	uint32_t i = torsh_resident_blocks_from(own, chunk->begin);

	return i < own->index.n && torsh_resident_blocks_at(own, i).begin < chunk->chunk_end;
}

/* Add the blocks of an ancestor from before the fork, as far as their memory was not given out. */
static void add_inherited(struct resident_blocks *blocks, const struct wanted_pages *wanted,
			  const struct target *ancestor, uint64_t fork_ns)
{
	const struct heap *heap = &ancestor->state.heap;
	struct resident_blocks more;
	struct live_block block;
	uint64_t at = 0;

	torsh_resident_blocks_create(&more, blocks->is_glibc);
	while (torsh_live_next(&heap->live, &at, &block)) {
		struct resident_chunk chunk = {
			.begin = block.address,
			.chunk_end = block.address + (block.size ? block.size : 1),
		};

		if (is_wanted(wanted, &chunk) && !is_taken(blocks, &chunk) &&
		    torsh_clock_to_ns(&ancestor->state.clock, heap->first_stamp + block.stamp) <=
			    fork_ns)
			torsh_resident_blocks_add(&more, block.address, block.size, block.usable,
						  heap->sites[block.site].stack);
	}
	torsh_resident_blocks_join(blocks, &more);
	torsh_resident_blocks_destroy(&more);
}

static void add_ancestors(struct resident_blocks *blocks, const struct wanted_pages *wanted,
			  const struct account_source *source, bool *has_blocks)
{
	const struct target *target = source->target;

	for (uint32_t i = 0; i < source->n_ancestors; i++) {
		const struct target *ancestor = source->ancestors[i];

		if (why_undivided(ancestor, source->left_bytes))
			return;
		*has_blocks |= ancestor->state.heap.allocs != 0;
		add_inherited(blocks, wanted, ancestor, target->state.clock.start_ns);
		target = ancestor;
	}
}

static const char *collect(struct resident_blocks *blocks, const struct memory_look *look,
			   const struct account_source *source)
{
	struct wanted_pages *wanted;
	const struct target *target = source->target;
	const char *why = why_undivided(target, source->left_bytes);
	bool has_blocks = target->state.heap.allocs;

	if (why)
		return why;
	add_own(blocks, target);
	if (source->n_ancestors) {
		torsh_resident_blocks_end(blocks);
		wanted = torsh_memory_new(1, sizeof(*wanted));
		find_wanted(wanted, look, source->inherited);
		add_ancestors(blocks, wanted, source, &has_blocks);
		torsh_page_runs_free(&wanted->runs);
		free(wanted);
	}
	return has_blocks ? NULL : "no block was recorded";
}

const char *torsh_source_blocks_collect(struct resident_blocks *blocks,
					const struct memory_look *look,
					const struct account_source *source)
{
	size_t n;
	char *allocator =
		torsh_view_text(&source->target->view, source->target->start.allocator, -1, &n);

	torsh_resident_blocks_create(blocks, torsh_is_of_glibc(allocator));
	free(allocator);
	return collect(blocks, look, source);
}
