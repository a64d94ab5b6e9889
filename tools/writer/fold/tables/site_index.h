/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The numbers of sites by their stacks. A site is an item of an array, from 1 on, which has its
 * stack in a field.
 */
#ifndef TORSH_WRITER_FOLD_TABLES_SITE_INDEX_H
#define TORSH_WRITER_FOLD_TABLES_SITE_INDEX_H

#include <stddef.h>

#include "tools/base/containers/number_index.h"

/* Where the stacks of the sites are: the field of item 0, and the distance to the next. */
struct site_stacks {
	const uint32_t *first;
	size_t item_bytes;
};

static inline uint32_t torsh_site_stack(struct site_stacks stacks, uint32_t site)
{
	return *(const uint32_t *)(const void *)((const char *)stacks.first +
						 site * stacks.item_bytes);
}

/* Hash of a stack's number: neighbours are far apart. */
static inline uint32_t torsh_site_hash(uint32_t stack)
{
	uint64_t h = stack * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)((h ^ h >> 32) * UINT64_C(0xc2b2ae3d27d4eb4f) >> 32);
}

/* Returns the number of the stack's site; 0: none. */
static inline uint32_t torsh_site_find(const struct number_index *index, struct site_stacks stacks,
				       uint32_t stack)
{
	uint32_t hash = torsh_site_hash(stack), i = torsh_number_index_home(index, hash), site;

	while ((site = torsh_number_index_next(index, hash, &i)) &&
	       torsh_site_stack(stacks, site) != stack)
		;
	return site;
}

/* Prefetch the slot of the stack. */
static inline void torsh_site_prefetch(const struct number_index *index, uint32_t stack)
{
	__builtin_prefetch(&index->slots[torsh_number_index_home(index, torsh_site_hash(stack))]);
}

/* Prefetch the item that the slot names, once that is in the cache. */
static inline void torsh_site_prefetch_item(const struct number_index *index,
					    struct site_stacks stacks, uint32_t stack)
{
	uint32_t site = torsh_number_index_guess(index, torsh_site_hash(stack));

	__builtin_prefetch((const char *)stacks.first + site * stacks.item_bytes, 1);
}

/* Add the next site, which has its stack: number index->n_used + 1. */
void torsh_site_add(struct number_index *index, struct site_stacks stacks);

#endif
