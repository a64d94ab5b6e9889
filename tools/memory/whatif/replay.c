/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/whatif/replay.h"

#include <math.h>
#include <stdlib.h>

#include "tools/base/die.h"

#define BLOCK_MIN 512u

/* Returns false if the device is out of memory. */
static bool apply(struct caching_allocator *allocator, struct allocator_block **given,
		  const struct memory_trace *trace, const struct trace_change *change)
{
	switch (change->kind) {
	case TRACE_ALLOC:
		given[change->block] = torsh_caching_allocator_alloc(
			allocator, trace->blocks[change->block].bytes);
		return given[change->block];
	case TRACE_FREE:
		torsh_caching_allocator_free(allocator, given[change->block]);
		return true;
	case TRACE_RELEASE:
		torsh_caching_allocator_release(allocator);
		return true;
	}
	return true;
}

static void note_failure(struct replay *replay, const struct caching_allocator *allocator,
			 uint32_t block)
{
	replay->is_out_of_memory = true;
	replay->failed_block = block;
	replay->missing_bytes = allocator->missing_bytes;
	replay->at_failure = (struct tensor_sums){.allocated = allocator->allocated_bytes,
						  .reserved = allocator->reserved_bytes};
}

struct replay torsh_replay(const struct memory_trace *trace,
			   const struct allocator_settings *settings, uint64_t capacity_bytes)
{
	struct allocator_block **given =
		torsh_need_items(NULL, 0, trace->n_blocks, sizeof(struct allocator_block *));
	struct caching_allocator allocator;
	struct replay replay = {0};

	torsh_caching_allocator_create(&allocator, settings, capacity_bytes);
	for (size_t i = 0; i < trace->n_changes && !replay.is_out_of_memory; i++) {
		if (!apply(&allocator, given, trace, &trace->changes[i]))
			note_failure(&replay, &allocator, trace->changes[i].block);
	}
	replay.peak = (struct tensor_sums){.allocated = allocator.allocated_peak_bytes,
					   .reserved = allocator.reserved_peak_bytes};
	torsh_caching_allocator_destroy(&allocator);
	free(given);
	return replay;
}

/*
 * Allocate the block with its size, else with the recorded one if that gives another block. Where a
 * block was not split, the recorded size may be none that requests are rounded to.
 */
static struct allocator_block *alloc_fitting(struct caching_allocator *allocator,
					     struct trace_block *block)
{
	uint64_t recorded_bytes = block->recorded_bytes;
	const uint64_t sizes[] = {
		recorded_bytes,
		recorded_bytes < BLOCK_MIN
			? recorded_bytes
			: torsh_caching_allocator_round_down(&allocator->settings, recorded_bytes)};
	struct allocator_block *given = torsh_caching_allocator_alloc(allocator, block->bytes);

	for (size_t i = 0; given && i < sizeof(sizes) / sizeof(*sizes); i++) {
		if (given->size == recorded_bytes || block->bytes == sizes[i])
			continue;
		torsh_caching_allocator_free(allocator, given);
		block->bytes = sizes[i];
		given = torsh_caching_allocator_alloc(allocator, block->bytes);
	}
	return given;
}

void torsh_replay_fit(struct memory_trace *trace, const struct allocator_settings *settings)
{
	struct allocator_block **given =
		torsh_need_items(NULL, 0, trace->n_blocks, sizeof(struct allocator_block *));
	struct caching_allocator allocator;

	torsh_caching_allocator_create(&allocator, settings, 0);
	for (size_t i = 0; i < trace->n_changes; i++) {
		const struct trace_change *change = &trace->changes[i];

		if (change->kind != TRACE_ALLOC) {
			apply(&allocator, given, trace, change);
			continue;
		}
		given[change->block] = alloc_fitting(&allocator, &trace->blocks[change->block]);
		if (!given[change->block])
			break;
	}
	torsh_caching_allocator_destroy(&allocator);
	free(given);
}

static double difference(uint64_t found, uint64_t expected)
{
	return expected ? fabs((double)found - (double)expected) / (double)expected : 0;
}

double torsh_replay_difference(const struct replay *replay, const struct tensor_sums *recorded)
{
	return fmax(difference(replay->peak.reserved, recorded->reserved),
		    difference(replay->peak.allocated, recorded->allocated));
}
