/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Cached suffixes: the innermost frames of earlier captures of a thread. A program runs through the
 * same few functions again and again; while the slots that the walk read keep their values it takes
 * the same path.
 *
 * Between two captures the program may evict all of this from the processor's caches. So an entry
 * is compact: its first line and one for each two frames decide whether it fits, and prove it. And
 * each entry has the numbers of those that followed it: they are tried first and prefetched.
 */
#ifndef TORSH_AGENT_STACK_CAPTURE_SUFFIXES_H
#define TORSH_AGENT_STACK_CAPTURE_SUFFIXES_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/stack/cpu/unwind_cpu.h"

#define SUFFIX_FRAMES 16u
#define N_SUFFIXES 2048u
#define N_FIRST_SUFFIXES 16u
#define SUFFIX_PAIR_BITS 11
#define FIRST_SUFFIX_PAIR_BITS 4

/* Number 0 of a cache is no entry: it never fits. */
struct suffix {
	alignas(64) uint32_t generation; /* of the unwind rules; 0: none */
	uint16_t next[2]; /* the entries that followed this one, the last first */
	uint16_t n_kept; /* frames outside of it; the innermost is the parent */
	uint16_t first_check; /* number of checks that prove everything outside of the parent */
	uint16_t pair; /* of the index, that it was entered in */
	uint8_t n_frames;
	bool needs_bp; /* these three: of the innermost frame */
	uintptr_t sp;
	uint64_t tagged_ip;
	struct suffix_frame frames[1 + SUFFIX_FRAMES]; /* the parent, then outermost first */
};

_Static_assert(sizeof(struct suffix_frame) == 32 && sizeof(struct suffix) % 64 == 0,
	       "two frames are a cache line");

/*
 * The entries in the order of their first use, so that those of one part of a program are
 * neighbours; the index has a pair of them for each hash, the newer one first.
 */
struct suffix_cache {
	struct suffix *entries;
	uint16_t next[2]; /* as in the last entry, which itself needs not be read */
	uint16_t last; /* that the last capture used or added */
	uint16_t (*index)[2];
	uint32_t n_entries, n_used;
	uint32_t n_populated; /* entries in pages that exist, or will exist once they are used */
	uint32_t shift; /* for hashes: 64 less the bits of a pair's number */
	uint32_t oldest; /* the next to be replaced once all are used */
};

/* Use these entries, the first n_populated in populated pages, and this index, all zeroed. */
static inline void torsh_suffixes_use(struct suffix_cache *cache, struct suffix *entries,
				      uint32_t n_entries, uint32_t n_populated,
				      uint16_t (*index)[2], uint32_t pair_bits)
{
	*cache = (struct suffix_cache){.entries = entries,
				       .index = index,
				       .n_entries = n_entries,
				       .n_used = 1,
				       .n_populated = n_populated,
				       .oldest = 1,
				       .shift = 64 - pair_bits};
}

/*
 * The pair of a capture in the frame with this address and sp. outer_tagged_ip is that of the next
 * outer frame: functions like operator new are called from many places, but call from few.
 */
static inline uint32_t torsh_suffixes_pair(const struct suffix_cache *cache, uintptr_t sp,
					   uint64_t tagged_ip, uint64_t outer_tagged_ip)
{
	return (uint32_t)((sp + tagged_ip * 5 + outer_tagged_ip * 9) *
				  UINT64_C(0x9e3779b97f4a7c15) >>
			  cache->shift);
}

/* Note that a capture used this entry, and prefetch those that are likely next. */
static inline void torsh_suffixes_follow(struct suffix_cache *cache, uint32_t n)
{
	struct suffix *last = &cache->entries[cache->last];
	const struct suffix *entry = &cache->entries[n];
	const char *next;

	if (cache->next[0] != n) {
		last->next[1] = cache->next[0];
		last->next[0] = (uint16_t)n;
	}
	cache->last = (uint16_t)n;
	cache->next[0] = entry->next[0];
	cache->next[1] = entry->next[1];
	next = (const char *)&cache->entries[entry->next[0]];
	__builtin_prefetch(next);
	__builtin_prefetch(next + 64);
	__builtin_prefetch(next + 128);
	__builtin_prefetch(&cache->entries[entry->next[1]]);
}

/*
 * An entry for this pair of the index, to be filled; counts a valid one of this generation that is
 * lost. Returns its number.
 */
uint32_t torsh_suffixes_add(struct suffix_cache *cache, uint32_t pair, uint32_t generation,
			    uint32_t *n_evicted);

/* Drop all entries. */
void torsh_suffixes_clear(struct suffix_cache *cache);

#endif
