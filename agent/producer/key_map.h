/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A hash table from keys to values, neither of them 0, that only grows. Any thread reads and writes
 * it without locks, also in a signal handler. For data that lives as long as the process.
 */
#ifndef TORSH_AGENT_PRODUCER_KEY_MAP_H
#define TORSH_AGENT_PRODUCER_KEY_MAP_H

#include <stdatomic.h>
#include <stdint.h>

struct key_table;

struct key_map {
	struct key_table *_Atomic newest; /* NULL: empty */
};

/* The value of key, or 0. Any thread, async-signal-safe. */
uint64_t torsh_key_map_find(struct key_map *map, uint64_t key);

/*
 * Add a value for a key that was not found. Returns the value in effect, which may be one that
 * another thread stored first. Without memory nothing is stored. In a race with a growing table a
 * key may get two values; later look-ups find either.
 */
uint64_t torsh_key_map_add(struct key_map *map, uint64_t key, uint64_t value);

/* Hash a into a key; never 0. */
static inline uint64_t torsh_key_map_mix(uint64_t a, uint64_t b)
{
	uint64_t h = (a ^ b * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xc2b2ae3d27d4eb4f);

	h = (h ^ h >> 32) * UINT64_C(0x165667b19e3779f9);
	return (h ^ h >> 29) | 1;
}

#endif
