/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/allocator/caching_allocator.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/memory/allocator/allocator_pages.h"

#define MIB (UINT64_C(1) << 20)
#define SMALL_MAX MIB
#define SMALL_SEGMENT (2 * MIB)
#define LARGE_SEGMENT (20 * MIB)
#define LARGE_MIN (10 * MIB) /* from here on a segment has the size of its block */
#define LARGE_GRANULE (2 * MIB)
#define BLOCK_GRANULE UINT64_C(512)

void torsh_caching_allocator_create(struct caching_allocator *allocator,
				    const struct allocator_settings *settings,
				    uint64_t capacity_bytes)
{
	*allocator = (struct caching_allocator){
		.settings = *settings,
		.capacity_bytes = capacity_bytes,
		.small = {.is_small = true, .page_bytes = SMALL_SEGMENT},
		.large = {.page_bytes = LARGE_SEGMENT},
		.next_address = LARGE_SEGMENT,
	};
	allocator->small.free.is_by_size = allocator->large.free.is_by_size = true;
}

void torsh_caching_allocator_destroy(struct caching_allocator *allocator)
{
	for (size_t i = 0; i < allocator->n_made; i++)
		free(allocator->made[i]);
	free(allocator->made);
	free(allocator->small.free.items);
	free(allocator->small.unmapped.items);
	free(allocator->large.free.items);
	free(allocator->large.unmapped.items);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static unsigned log2_of(uint64_t number)
{
	return 63u - (unsigned)__builtin_clzll(number);
}

static uint64_t divisions_of(const struct allocator_settings *settings, uint64_t bytes)
{
	unsigned interval = bytes >= MIB ? log2_of(bytes / MIB) : 0;

	return settings->roundup_divisions[interval < ROUNDUP_INTERVALS ? interval
									: ROUNDUP_INTERVALS - 1];
}

static uint64_t round_up(uint64_t bytes, uint64_t granule)
{
	return (bytes + granule - 1) / granule * granule;
}

/* Returns what the size is rounded to a multiple of. */
static uint64_t granule_of(const struct allocator_settings *settings, uint64_t bytes)
{
	uint64_t divisions = divisions_of(settings, bytes);

	if (divisions <= 1 || bytes <= BLOCK_GRANULE * divisions)
		return BLOCK_GRANULE;
	/* The power of two below the size, divided into so many parts, a power of two as well. */
	return (UINT64_C(1) << log2_of(bytes)) >> log2_of(divisions);
}

static uint64_t round_size(const struct allocator_settings *settings, uint64_t bytes)
{
	return bytes < BLOCK_GRANULE ? BLOCK_GRANULE : round_up(bytes, granule_of(settings, bytes));
}

uint64_t torsh_caching_allocator_round_down(const struct allocator_settings *settings,
					    uint64_t bytes)
{
	uint64_t granule = granule_of(settings, bytes);

	return bytes / granule * granule;
}

static uint64_t segment_size(uint64_t bytes)
{
	if (bytes <= SMALL_MAX)
		return SMALL_SEGMENT;
	return bytes < LARGE_MIN ? LARGE_SEGMENT : round_up(bytes, LARGE_GRANULE);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

struct allocator_block *torsh_allocator_block_create(struct caching_allocator *allocator,
						     struct allocator_pool *pool, uint64_t address,
						     uint64_t size)
{
	struct allocator_block *block = allocator->spare;

	if (block) {
		allocator->spare = block->next;
	} else {
		block = torsh_need_items(NULL, 0, 1, sizeof(*block));
		allocator->made =
			torsh_array_reserve(allocator->made, allocator->n_made,
					    &allocator->made_room, sizeof(*allocator->made));
		allocator->made[allocator->n_made++] = block;
	}
	*block = (struct allocator_block){
		.pool = pool, .address = address, .size = size, .is_mapped = true};
	return block;
}

void torsh_allocator_block_drop(struct caching_allocator *allocator, struct allocator_block *block)
{
	if (block->previous)
		block->previous->next = block->next;
	if (block->next)
		block->next->previous = block->previous;
	block->next = allocator->spare;
	allocator->spare = block;
}

struct allocator_block *torsh_allocator_block_split(struct caching_allocator *allocator,
						    struct allocator_block *block, uint64_t size)
{
	struct allocator_block *rest = torsh_allocator_block_create(
		allocator, block->pool, block->address + size, block->size - size);

	rest->is_expandable = block->is_expandable;
	rest->is_mapped = block->is_mapped;
	rest->freed_at = block->freed_at;
	rest->previous = block;
	rest->next = block->next;
	if (rest->next)
		rest->next->previous = rest;
	block->next = rest;
	block->size = size;
	return rest;
}

/* Merge a neighbour that is in the same state into the block, which is in no set. */
static void merge(struct caching_allocator *allocator, struct allocator_block *block,
		  struct allocator_block *other)
{
	struct allocator_pool *pool = block->pool;

	if (!other || other->is_allocated || other->is_mapped != block->is_mapped)
		return;
	torsh_block_set_remove(other->is_mapped ? &pool->free : &pool->unmapped, other);
	if (other->address < block->address)
		block->address = other->address;
	block->size += other->size;
	torsh_allocator_block_drop(allocator, other);
}

void torsh_allocator_block_keep(struct caching_allocator *allocator, struct allocator_block *block)
{
	struct allocator_pool *pool = block->pool;

	merge(allocator, block, block->previous);
	merge(allocator, block, block->next);
	block->freed_at = pool->n_searches;
	torsh_block_set_add(block->is_mapped ? &pool->free : &pool->unmapped, block);
}

bool torsh_allocator_reserve(struct caching_allocator *allocator, uint64_t bytes)
{
	uint64_t needed = allocator->reserved_bytes + bytes;

	if (allocator->capacity_bytes && needed > allocator->capacity_bytes) {
		allocator->missing_bytes = needed - allocator->capacity_bytes;
		return false;
	}
	allocator->reserved_bytes = needed;
	if (needed > allocator->reserved_peak_bytes)
		allocator->reserved_peak_bytes = needed;
	return true;
}

/* ---- segments -------------------------------------------------------------------------------- */

/* Returns a new segment as one block in no set, or NULL. */
static struct allocator_block *create_segment(struct caching_allocator *allocator,
					      struct allocator_pool *pool, uint64_t bytes)
{
	uint64_t size = segment_size(bytes);
	struct allocator_block *block;

	if (allocator->settings.is_expandable)
		return torsh_allocator_pages_take(allocator, pool, bytes);
	if (allocator->next_address > ALLOCATOR_ADDRESS_MAX ||
	    !torsh_allocator_reserve(allocator, size))
		return NULL;
	block = torsh_allocator_block_create(allocator, pool, allocator->next_address, size);
	/* Never next to another segment, although only links join blocks. */
	allocator->next_address += size + LARGE_GRANULE;
	return block;
}

static bool is_whole_segment(const struct allocator_block *block)
{
	return !block->is_expandable && !block->previous && !block->next;
}

static void release_segment(struct caching_allocator *allocator, struct allocator_block *block)
{
	torsh_block_set_remove(&block->pool->free, block);
	allocator->reserved_bytes -= block->size;
	torsh_allocator_block_drop(allocator, block);
}

static void release_pool(struct caching_allocator *allocator, struct allocator_pool *pool)
{
	torsh_allocator_pages_release(allocator, pool);
	for (size_t i = pool->free.n; i-- > 0;) {
		if (is_whole_segment(pool->free.items[i]))
			release_segment(allocator, pool->free.items[i]);
	}
}

void torsh_caching_allocator_release(struct caching_allocator *allocator)
{
	release_pool(allocator, &allocator->large);
	release_pool(allocator, &allocator->small);
}

/*
 * Blocks that are never split are released first, where max_split_size_mb is set: one that is large
 * enough, or the largest ones. Returns false if that doesn't yield the size.
 */
static bool release_oversized(struct caching_allocator *allocator, struct allocator_pool *pool,
			      uint64_t bytes)
{
	uint64_t limit = allocator->settings.max_split_bytes, released = 0;
	uint64_t needed = bytes < limit ? limit : bytes;
	struct block_set *set = &pool->free;
	size_t at;

	if (limit == UINT64_MAX)
		return false;
	at = torsh_block_set_find(set, needed, 0);
	if (at < set->n && is_whole_segment(set->items[at])) {
		release_segment(allocator, set->items[at]);
		return true;
	}
	while (at-- > 0 && released < needed && set->items[at]->size >= limit) {
		if (!is_whole_segment(set->items[at]))
			continue;
		released += set->items[at]->size;
		release_segment(allocator, set->items[at]);
	}
	return released >= needed;
}

/* ---- collection ------------------------------------------------------------------------------ */

struct ages {
	uint64_t sum, n;
};

static uint64_t age_of(const struct allocator_block *block)
{
	return block->pool->n_searches - block->freed_at;
}

static struct ages sum_ages(const struct allocator_pool *pool)
{
	struct ages ages = {0};

	for (size_t i = 0; i < pool->free.n; i++) {
		if (is_whole_segment(pool->free.items[i])) {
			ages.sum += age_of(pool->free.items[i]);
			ages.n++;
		}
	}
	return ages;
}

/* Release segments that are at least of the mean age. Returns their size. */
static uint64_t collect_old(struct caching_allocator *allocator, struct ages ages, uint64_t target)
{
	struct block_set *set = &allocator->large.free;
	uint64_t released = 0;

	for (size_t i = 0; i < set->n && released < target;) {
		struct allocator_block *block = set->items[i];

		if (!is_whole_segment(block) || age_of(block) < ages.sum / ages.n) {
			i++;
			continue;
		}
		released += block->size;
		release_segment(allocator, block);
	}
	return released;
}

/* Under a capacity: above its threshold, release what was not used for longest. */
static void collect(struct caching_allocator *allocator)
{
	uint64_t limit = (uint64_t)(allocator->settings.collection_threshold *
				    (double)allocator->capacity_bytes);
	struct ages ages;

	if (!limit)
		return;
	while (allocator->reserved_bytes > limit && (ages = sum_ages(&allocator->large)).n) {
		if (!collect_old(allocator, ages, allocator->reserved_bytes - limit))
			return;
	}
}

/* ---- the allocator --------------------------------------------------------------------------- */

static uint64_t size_with_pages(const struct allocator_block *block)
{
	return block->size + (block->next && !block->next->is_mapped ? block->next->size : 0);
}

/* Returns the smallest free block that may be taken, removed from its set; or NULL. */
static struct allocator_block *take_free(struct caching_allocator *allocator,
					 struct allocator_pool *pool, uint64_t bytes)
{
	const struct allocator_settings *settings = &allocator->settings;
	struct block_set *set = &pool->free;
	struct allocator_block *block;
	size_t at = torsh_block_set_find(set, bytes, 0);

	pool->n_searches++;
	if (at == set->n)
		return NULL;
	/* A block that pages can be added to counts with these. */
	while (settings->is_expandable && set->items[at]->is_expandable && at + 1 < set->n &&
	       size_with_pages(set->items[at + 1]) < size_with_pages(set->items[at]))
		at++;
	block = set->items[at];
	if (bytes < settings->max_split_bytes && block->size >= settings->max_split_bytes)
		return NULL;
	if (bytes >= settings->max_split_bytes &&
	    block->size >= bytes + settings->max_rounding_bytes)
		return NULL;
	torsh_block_set_remove(set, block);
	return block;
}

static bool has_rest(const struct caching_allocator *allocator, const struct allocator_block *block,
		     uint64_t bytes)
{
	uint64_t rest = block->size - bytes;

	if (block->pool->is_small || allocator->settings.is_expandable)
		return rest >= BLOCK_GRANULE;
	return bytes < allocator->settings.max_split_bytes && rest > SMALL_MAX;
}

/* Returns a block from a new segment, releasing cached ones where that is needed; or NULL. */
static struct allocator_block *take_new(struct caching_allocator *allocator,
					struct allocator_pool *pool, uint64_t bytes)
{
	struct allocator_block *block;

	collect(allocator);
	block = create_segment(allocator, pool, bytes);
	if (!block && release_oversized(allocator, pool, bytes))
		block = create_segment(allocator, pool, bytes);
	if (block)
		return block;
	torsh_caching_allocator_release(allocator);
	return create_segment(allocator, pool, bytes);
}

struct allocator_block *torsh_caching_allocator_alloc(struct caching_allocator *allocator,
						      uint64_t bytes)
{
	struct allocator_block *block;
	struct allocator_pool *pool;
	uint64_t size;

	if (bytes > ALLOCATOR_BYTES_MAX) {
		allocator->missing_bytes = bytes;
		return NULL;
	}
	size = round_size(&allocator->settings, bytes);
	pool = size <= SMALL_MAX ? &allocator->small : &allocator->large;
	block = take_free(allocator, pool, size);
	if (!block)
		block = take_new(allocator, pool, size);
	if (!block)
		return NULL;
	if (has_rest(allocator, block, size))
		torsh_block_set_add(&pool->free,
				    torsh_allocator_block_split(allocator, block, size));
	block->is_allocated = true;
	allocator->allocated_bytes += block->size;
	if (allocator->allocated_bytes > allocator->allocated_peak_bytes)
		allocator->allocated_peak_bytes = allocator->allocated_bytes;
	return block;
}

void torsh_caching_allocator_free(struct caching_allocator *allocator,
				  struct allocator_block *block)
{
	allocator->allocated_bytes -= block->size;
	block->is_allocated = false;
	torsh_allocator_block_keep(allocator, block);
}
