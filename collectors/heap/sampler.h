/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The heap collector where blocks are sampled (TORSH_PROFILER_HEAP=sampled). Sample points lie on
 * the bytes that a thread allocates, torsh_config.heap_rate apart on average, with exponentially
 * distributed gaps; a block is sampled if it has one or more of them: with probability
 * 1 - exp(-size / rate), independently of all others. A block of size 0 counts as one byte. Sampled
 * blocks are recorded as all blocks are otherwise; of the others the thread's slot counts the exact
 * number and bytes (struct heap_counts).
 */
#ifndef TORSH_COLLECTORS_HEAP_SAMPLER_H
#define TORSH_COLLECTORS_HEAP_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/producer/producer.h"
#include "agent/wire/channel.h"
#include "agent/wire/event.h"
#include "collectors/heap/sampled_blocks.h"
#include "shim/pause.h"

/*
 * What needs the producer entered. Apart from the common case, which then is short. is_counted: the
 * block was counted, and is a sample if is_sample.
 */
void torsh_sampler_allocated_slowly(const struct event_alloc *alloc, const void *frame,
				    bool is_counted, bool is_sample);
void torsh_sampler_freeing_slowly(void *block, bool is_sampled, bool is_realloc);

/* The filter of sampled blocks has this one. */
void torsh_sampler_freeing_candidate(void *block, bool is_realloc);

/* Whether the thread's counts may be changed without entering: nothing of it is in a hook. */
static inline bool torsh_sampler_is_at_rest(const struct producer *producer)
{
	return atomic_load_explicit(&producer->state, memory_order_relaxed) == PRODUCER_IDLE &&
	       producer->sampler.counts;
}

/* Count an allocation. Returns whether it is sampled. */
static inline bool torsh_sampler_count(struct heap_sampler *sampler, size_t size)
{
	struct heap_counts *counts = sampler->counts;
	uint32_t size_class = torsh_channel_size_class(size);

	torsh_cpu_add(&counts->sizes[size_class].blocks, 1);
	torsh_cpu_add(&counts->sizes[size_class].bytes, size);
	return !torsh_cpu_take(&sampler->bytes_left, (int64_t)(size + !size));
}

/* A block, which is not NULL, was allocated by the calling thread, in no pause. */
static inline void torsh_sampler_allocated(void *block, size_t size, enum alloc_entry entry,
					   const void *frame)
{
	struct producer *producer = torsh_producer_self;
	bool is_counted, is_sample = false;

	is_counted = __builtin_expect(torsh_sampler_is_at_rest(producer), 1);
	if (is_counted) {
		is_sample = torsh_sampler_count(&producer->sampler, size);
		if (__builtin_expect(!is_sample && (entry != ALLOC_REALLOC ||
						    !producer->sampler.is_resizing),
				     1))
			return;
	}
	torsh_sampler_allocated_slowly(
		&(struct event_alloc){.address = (uintptr_t)block, .size = size, .entry = entry},
		frame, is_counted, is_sample);
}

/* A block was made by a realloc in a pause: it is not recorded. */
void torsh_sampler_resized_in_pause(const void *block);

/* Count the free of a block that is not sampled. */
static inline void torsh_sampler_freeing_unsampled(void *block, bool is_realloc)
{
	struct producer *producer = torsh_producer_self;

	if (torsh_pause_is_own())
		return;
	if (__builtin_expect(torsh_sampler_is_at_rest(producer), 1))
		torsh_cpu_add(&producer->sampler.counts->frees, 1);
	else
		torsh_sampler_freeing_slowly(block, false, is_realloc);
}

/* A block, which is not NULL, is about to be freed or resized. */
static inline void torsh_sampler_freeing(void *block, bool is_realloc)
{
	if (__builtin_expect(torsh_sampled_blocks_may_have(block), 0))
		torsh_sampler_freeing_candidate(block, is_realloc);
	else
		torsh_sampler_freeing_unsampled(block, is_realloc);
}

/* The resize failed. */
void torsh_sampler_not_resized(void *block);

#endif
