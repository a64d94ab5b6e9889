/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The heap collector: every block that the program allocates, resizes and frees. The wrappers are
 * in shim/libc/heap.c.
 */
#include <stdbool.h>

#include "agent/process/config.h"
#include "agent/producer/producer.h"
#include "collectors/heap/sampled_blocks.h"
#include "collectors/heap/sampler.h"
#include "shim/hooks.h"
#include "shim/libc/next.h"
#include "shim/pause.h"

static bool is_off(void)
{
	return !(torsh_config.activities & ACTIVITY_HEAP);
}

/* is_elsewhere: by another allocator than malloc's, which has no usable size to query. */
static __attribute__((noinline)) void record_alloc(void *block, size_t size, enum alloc_entry entry,
						   const void *frame, bool is_elsewhere)
{
	struct event_alloc alloc = {.address = (uintptr_t)block, .size = size, .entry = entry};
	struct producer *producer = torsh_producer_enter();

	if (!producer)
		return;
	if (!is_elsewhere && torsh_next.has_usable_size)
		alloc.usable = torsh_next.malloc_usable_size(block);
	torsh_producer_alloc(producer, &alloc, torsh_config.with_stack ? frame : NULL);
	torsh_producer_leave(producer);
}

/*
 * Only a realloc's new block is sent, without its stack: the old one may be from before the pause.
 */
static __attribute__((noinline)) void record_in_pause(void *block, size_t size,
						      enum alloc_entry entry, bool is_elsewhere)
{
	bool is_own = torsh_pause_is_own();

	if (is_off() || (is_own && entry != ALLOC_REALLOC))
		return;
	if (!torsh_config.heap_rate)
		record_alloc(block, size, entry, NULL, is_elsewhere);
	else if (is_own)
		torsh_sampler_resized_in_pause(block);
	else
		torsh_sampler_allocated(block, size, entry, NULL);
}

static inline void record_unpaused(void *block, size_t size, enum alloc_entry entry,
				   const void *frame, bool is_elsewhere)
{
	if (__builtin_expect(!block, 0))
		return;
	if (torsh_config.heap_rate) {
		torsh_sampler_allocated(block, size, entry, frame);
		return;
	}
	record_alloc(block, size, entry, frame, is_elsewhere);
}

/* What records is apart, so that a hook has few instructions while nothing is recorded. */
static inline void record_if_sent(void *block, size_t size, enum alloc_entry entry,
				  const void *frame, bool is_elsewhere)
{
	if (!torsh_pause_lasts())
		record_unpaused(block, size, entry, frame, is_elsewhere);
	else if (block)
		record_in_pause(block, size, entry, is_elsewhere);
}

void torsh_heap_allocated_unpaused(void *block, size_t size, enum alloc_entry entry,
				   const void *frame)
{
	record_unpaused(block, size, entry, frame, false);
}

void torsh_heap_allocated(void *block, size_t size, enum alloc_entry entry, const void *frame)
{
	record_if_sent(block, size, entry, frame, false);
}

void torsh_heap_allocated_elsewhere(void *block, size_t size, enum alloc_entry entry,
				    const void *frame)
{
	record_if_sent(block, size, entry, frame, true);
}

static __attribute__((noinline)) void send_free(const void *block, bool is_realloc)
{
	struct producer *producer = torsh_producer_enter();

	if (!producer)
		return;
	torsh_producer_free(producer, (uintptr_t)block, is_realloc);
	torsh_producer_leave(producer);
}

static inline __attribute__((always_inline)) void record_free(void *block, bool is_realloc)
{
	if (__builtin_expect(!block || is_off(), 0))
		return;
	if (torsh_config.heap_rate)
		torsh_sampler_freeing(block, is_realloc);
	else
		send_free(block, is_realloc);
}

void torsh_heap_freeing(void *block)
{
	record_free(block, 0);
}

void torsh_heap_resizing(void *block)
{
	record_free(block, 1);
}

/* Send an event about a block that stays unchanged. Inlined, as torsh_producer_enter requires. */
static inline __attribute__((always_inline)) void
record_about(const void *block, const struct event *event, const void *frame)
{
	struct producer *producer;

	if (!block || is_off())
		return;
	producer = torsh_producer_enter();
	if (!producer)
		return;
	torsh_producer_event(producer, event, frame);
	torsh_producer_leave(producer);
}

void torsh_heap_not_resized(void *block)
{
	struct event event = {.id = EVENT_REALLOC_FAILED,
			      .realloc_failed = {.address = (uintptr_t)block}};

	if (torsh_config.heap_rate) {
		if (block)
			torsh_sampler_not_resized(block);
		return;
	}
	record_about(block, &event, NULL);
}

void torsh_heap_ignored(void *block)
{
	struct event event = {.id = EVENT_IGNORED, .ignored = {.address = (uintptr_t)block}};

	if (torsh_config.heap_rate && !torsh_sampled_blocks_have(block))
		return;
	record_about(block, &event, torsh_config.with_stack ? HOOK_FRAME : NULL);
}

void *torsh_heap_enter_allocator(void)
{
	struct producer *outer = torsh_producer_self;

	torsh_producer_self = &torsh_producer_quiet;
	return outer;
}

void torsh_heap_leave_allocator(void *outer)
{
	torsh_producer_self = outer;
}
