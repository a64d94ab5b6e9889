/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which cached suffix makes room for a new one. */
#include "agent/stack/capture/suffixes.h"

#include "shim/sys.h"

#define POPULATED_MIN 8u
#define POPULATED_MAX 64u
#define PAGE_BYTES ((uintptr_t)4096) /* where pages are larger the kernel refuses */

/*
 * Populate the pages of the next entries, as many as are used: one system call instead of a page
 * fault for each few of them.
 */
static void populate(struct suffix_cache *cache)
{
	uint32_t n = cache->n_used < POPULATED_MIN ? POPULATED_MIN : cache->n_used, left;
	uintptr_t at = (uintptr_t)&cache->entries[cache->n_populated] & ~(PAGE_BYTES - 1);

	left = cache->n_entries - cache->n_populated;
	n = n > POPULATED_MAX ? POPULATED_MAX : n;
	cache->n_populated += n > left ? left : n;
	torsh_sys_populate((void *)at, (uintptr_t)&cache->entries[cache->n_populated] - at);
}

static uint32_t take(struct suffix_cache *cache)
{
	uint32_t n = cache->oldest;

	if (cache->n_used >= cache->n_populated && cache->n_populated < cache->n_entries)
		populate(cache);
	if (cache->n_used < cache->n_entries)
		return cache->n_used++;
	cache->oldest = n + 1 < cache->n_entries ? n + 1 : 1;
	return n;
}

uint32_t torsh_suffixes_add(struct suffix_cache *cache, uint32_t pair, uint32_t generation,
			    uint32_t *n_evicted)
{
	uint16_t *ways = cache->index[pair];
	/* An older entry may have been replaced since: then another pair has it. */
	bool is_full = ways[1] && cache->entries[ways[1]].pair == pair;
	uint32_t n = is_full ? ways[1] : take(cache);
	struct suffix *entry = &cache->entries[n];

	*n_evicted += entry->generation == generation;
	entry->generation = generation;
	entry->pair = (uint16_t)pair;
	entry->next[0] = entry->next[1] = 0;
	if (n == cache->last)
		cache->next[0] = cache->next[1] = 0;
	ways[1] = ways[0];
	ways[0] = (uint16_t)n;
	return n;
}

void torsh_suffixes_clear(struct suffix_cache *cache)
{
	for (uint32_t i = 0; i < cache->n_used; i++)
		cache->entries[i].generation = 0;
}
