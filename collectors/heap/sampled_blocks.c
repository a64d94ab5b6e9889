/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A hash set in levels, each four times as large as the one before: an address is in the cache line
 * of eight slots that its hash selects in one of them. Levels never move and no entry does, so each
 * operation is one compare-and-swap. No address is added twice: the set has one thread at a time
 * for it, the block's owner.
 */
#include "collectors/heap/sampled_blocks.h"

#include <stddef.h>

#include "shim/sys.h"

#define LINE_SLOTS 8u
#define FIRST_BITS 9u /* lines of the first level, as a power of two */
#define N_LEVELS 8u
#define COUNT_MAX UINT8_MAX /* a counter that was there stays */

struct line {
	_Alignas(64) _Atomic uintptr_t slots[LINE_SLOTS];
};

_Atomic uint8_t *_Atomic torsh_sampled_filter;

static struct line first_level[1u << FIRST_BITS];
static struct line *_Atomic levels[N_LEVELS] = {first_level};

static uint32_t level_bits(uint32_t level)
{
	return FIRST_BITS + 2 * level;
}

static struct line *find_line(struct line *lines, uint32_t level, uintptr_t address)
{
	uint64_t hash = (uint64_t)(address >> 4) * UINT64_C(0x9e3779b97f4a7c15);

	return &lines[hash >> (64 - level_bits(level))];
}

/* Replace one value in the line by another. Returns false if it has none. */
static bool exchange(struct line *line, uintptr_t from, uintptr_t to)
{
	for (uint32_t i = 0; i < LINE_SLOTS; i++) {
		uintptr_t value = from;

		if (atomic_load_explicit(&line->slots[i], memory_order_relaxed) == from &&
		    atomic_compare_exchange_strong_explicit(&line->slots[i], &value, to,
							    memory_order_relaxed,
							    memory_order_relaxed))
			return true;
	}
	return false;
}

/* The level's lines, mapped at the first use; NULL without memory. */
static struct line *take_level(uint32_t level)
{
	/* Pairs with the release below. */
	struct line *lines = atomic_load_explicit(&levels[level], memory_order_acquire), *other;
	size_t n_bytes = sizeof(*lines) << level_bits(level);

	if (lines)
		return lines;
	lines = torsh_sys_pages(n_bytes);
	other = NULL;
	if (!lines ||
	    atomic_compare_exchange_strong_explicit(&levels[level], &other, lines,
						    memory_order_acq_rel, memory_order_acquire))
		return lines;
	torsh_sys_munmap(lines, n_bytes);
	return other;
}

/* Map the filter at its first use. Returns false without memory. */
static bool take_filter(void)
{
	_Atomic uint8_t *filter, *other = NULL;
	size_t n_bytes = sizeof(*filter) << SAMPLED_FILTER_BITS;

	if (atomic_load_explicit(&torsh_sampled_filter, memory_order_acquire))
		return true;
	filter = torsh_sys_pages(n_bytes);
	if (filter &&
	    !atomic_compare_exchange_strong_explicit(&torsh_sampled_filter, &other, filter,
						     memory_order_acq_rel, memory_order_acquire))
		torsh_sys_munmap((void *)filter, n_bytes);
	return filter || other;
}

/* The filter is mapped. */
static void change_filter(const void *block, int by)
{
	_Atomic uint8_t *filter = atomic_load_explicit(&torsh_sampled_filter, memory_order_acquire);
	_Atomic uint8_t *count = &filter[torsh_sampled_filter_index(block)];
	uint8_t n = atomic_load_explicit(count, memory_order_relaxed);

	while (n != COUNT_MAX &&
	       !atomic_compare_exchange_weak_explicit(count, &n, (uint8_t)(n + by),
						      memory_order_relaxed, memory_order_relaxed))
		;
}

bool torsh_sampled_blocks_add(const void *block)
{
	uintptr_t address = (uintptr_t)block;

	if (!take_filter())
		return false;
	for (uint32_t i = 0; i < N_LEVELS; i++) {
		struct line *lines = take_level(i);

		if (!lines)
			return false;
		if (exchange(find_line(lines, i, address), 0, address)) {
			change_filter(block, 1);
			return true;
		}
	}
	return false;
}

/* Replace the block in the set by another value. Returns false if it is not there. */
static bool replace(const void *block, uintptr_t by)
{
	uintptr_t address = (uintptr_t)block;

	for (uint32_t i = 0; i < N_LEVELS; i++) {
		struct line *lines = atomic_load_explicit(&levels[i], memory_order_acquire);

		if (!lines)
			return false;
		if (exchange(find_line(lines, i, address), address, by))
			return true;
	}
	return false;
}

bool torsh_sampled_blocks_have(const void *block)
{
	/* Replaced by itself it stays. */
	return replace(block, (uintptr_t)block);
}

bool torsh_sampled_blocks_remove(const void *block)
{
	if (!replace(block, 0))
		return false;
	change_filter(block, -1);
	return true;
}
