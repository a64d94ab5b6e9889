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

#include "agent/wire/event.h"

/* A block, which is not NULL, was allocated by the calling thread, in no pause. */
void torsh_sampler_allocated(void *block, size_t size, enum alloc_entry entry, const void *frame);

/* A block was made by a realloc in a pause: it is not recorded. */
void torsh_sampler_resized_in_pause(const void *block);

/* A block, which is not NULL, is about to be freed or resized. */
void torsh_sampler_freeing(void *block, bool is_realloc);

/* The resize failed. */
void torsh_sampler_not_resized(void *block);

#endif
