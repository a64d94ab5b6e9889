/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/heap/sampler.h"

#include <sys/auxv.h>

#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/producer/counter.h"
#include "agent/producer/producer.h"
#include "collectors/heap/sample_gap.h"
#include "collectors/heap/sampled_blocks.h"

/* For a producer whose counts found no memory: they are lost, and counted as that. */
static struct heap_counts spare_counts;

/* splitmix64 (Steele, Lea, Flood 2014): outputs of any two states differ in half of the bits. */
static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t seed(const struct producer *producer)
{
	uint64_t of_slot = (uint64_t)producer->ring.slot->use << 32 | producer->slot;
	const uint64_t *of_process = (const uint64_t *)getauxval(AT_RANDOM);

	if (torsh_config.heap_seed)
		return mix(mix(torsh_config.heap_seed) + of_slot) | 1;
	return mix(mix((of_process ? *of_process : 0) ^ torsh_cpu_ticks()) + of_slot +
		   ((uint64_t)torsh_process->pid << 20)) |
	       1;
}

static void start(struct producer *producer)
{
	struct heap_sampler *sampler = &producer->sampler;

	sampler->random = seed(producer);
	sampler->bytes_left = torsh_sampler_gap(&sampler->random, torsh_config.heap_rate);
	sampler->counts = torsh_channel_heap_counts(&torsh_process->channel, producer->slot);
	if (sampler->counts)
		return;
	sampler->counts = &spare_counts;
	torsh_count(COUNTER_heap_counts_lost);
}

/* The new block of a resize that is not sampled; the caller has entered the producer. */
static void end_resize(struct producer *producer, const void *block)
{
	struct event event = {.id = EVENT_REALLOC_UNSAMPLED,
			      .realloc_unsampled = {.address = (uintptr_t)block}};

	producer->sampler.is_resizing = false;
	torsh_producer_event(producer, &event, NULL);
}

static void take_sample(struct producer *producer, const struct event_alloc *alloc,
			const void *frame)
{
	struct heap_sampler *sampler = &producer->sampler;

	sampler->bytes_left = torsh_sampler_gap(&sampler->random, torsh_config.heap_rate);
	if (!torsh_sampled_blocks_add((const void *)(uintptr_t)alloc->address)) {
		torsh_count(COUNTER_samples_lost);
		return;
	}
	sampler->is_resizing = false;
	torsh_producer_alloc(producer, alloc, torsh_config.with_stack ? frame : NULL);
}

void torsh_sampler_allocated_slowly(const struct event_alloc *alloc, const void *frame,
				    bool is_counted, bool is_sample)
{
	struct producer *producer = torsh_producer_enter();

	if (!producer)
		return;
	if (!producer->sampler.counts)
		start(producer);
	if (!is_counted)
		is_sample = torsh_sampler_count(&producer->sampler, alloc->size);
	if (is_sample)
		take_sample(producer, alloc, frame);
	if (alloc->entry == ALLOC_REALLOC && producer->sampler.is_resizing)
		end_resize(producer, (const void *)(uintptr_t)alloc->address);
	torsh_producer_leave(producer);
}

void torsh_sampler_resized_in_pause(const void *block)
{
	struct producer *producer;

	if (!torsh_producer_self->sampler.is_resizing)
		return;
	producer = torsh_producer_enter();
	if (!producer)
		return;
	if (producer->sampler.is_resizing)
		end_resize(producer, block);
	torsh_producer_leave(producer);
}

void torsh_sampler_freeing_slowly(void *block, bool is_sampled, bool is_realloc)
{
	bool is_not_counted = torsh_pause_is_own();
	struct producer *producer = torsh_producer_enter();

	if (!producer)
		return;
	if (!producer->sampler.counts)
		start(producer);
	if (!is_not_counted)
		torsh_cpu_add(&producer->sampler.counts->frees, 1);
	if (is_sampled) {
		producer->sampler.is_resizing = is_realloc;
		torsh_producer_free(producer, (uintptr_t)block, is_realloc);
	}
	torsh_producer_leave(producer);
}

void torsh_sampler_freeing_candidate(void *block, bool is_realloc)
{
	if (torsh_sampled_blocks_remove(block))
		torsh_sampler_freeing_slowly(block, true, is_realloc);
	else
		torsh_sampler_freeing_unsampled(block, is_realloc);
}

void torsh_sampler_not_resized(void *block)
{
	struct event event = {.id = EVENT_REALLOC_FAILED,
			      .realloc_failed = {.address = (uintptr_t)block}};
	struct producer *producer;

	if (torsh_pause_is_own() && !torsh_producer_self->sampler.is_resizing)
		return;
	producer = torsh_producer_enter();
	if (!producer)
		return;
	if (producer->sampler.counts && !torsh_pause_is_own())
		torsh_cpu_add(&producer->sampler.counts->frees, UINT64_MAX);
	if (producer->sampler.is_resizing) {
		producer->sampler.is_resizing = false;
		if (!torsh_sampled_blocks_add(block))
			torsh_count(COUNTER_samples_lost);
		torsh_producer_event(producer, &event, NULL);
	}
	torsh_producer_leave(producer);
}
