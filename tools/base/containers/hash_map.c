/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Open addressing, at most half full. */
#include "tools/base/containers/hash_map.h"

#include <stdlib.h>
#include <xxhash.h>

#include "tools/base/die.h"

#define SLOTS_FIRST 64u

/* The key's slot, or the empty one where it would be. */
static struct hash_entry **find_slot(const struct hash_map *map, uint64_t hash, const void *key,
				     size_t n_key)
{
	size_t i = hash & (map->n_slots - 1);

	while (map->slots[i] && (map->slots[i]->hash != hash || map->slots[i]->n_key != n_key ||
				 memcmp(map->slots[i]->key, key, n_key) != 0))
		i = (i + 1) & (map->n_slots - 1);
	return &map->slots[i];
}

static void double_slots(struct hash_map *map)
{
	struct hash_map larger = {.n = map->n,
				  .n_slots = map->n_slots ? map->n_slots * 2 : SLOTS_FIRST};

	larger.slots = torsh_need_items(NULL, 0, larger.n_slots, sizeof(*larger.slots));
	for (size_t i = 0; i < map->n_slots; i++) {
		struct hash_entry *entry = map->slots[i];

		if (entry)
			*find_slot(&larger, entry->hash, entry->key, entry->n_key) = entry;
	}
	free(map->slots);
	*map = larger;
}

const struct hash_entry *torsh_hash_map_put(struct hash_map *map, const void *key, size_t n_key,
					    size_t value)
{
	uint64_t hash = XXH64(key, n_key, 0);
	struct hash_entry **slot, *entry;

	if (map->n * 2 >= map->n_slots)
		double_slots(map);
	slot = find_slot(map, hash, key, n_key);
	if (*slot)
		return *slot;
	entry = torsh_need(malloc(sizeof(*entry) + n_key));
	entry->hash = hash;
	entry->value = value;
	entry->n_key = n_key;
	memcpy(entry->key, key, n_key);
	map->n++;
	return *slot = entry;
}

const struct hash_entry *torsh_hash_map_find(const struct hash_map *map, const void *key,
					     size_t n_key)
{
	return map->n ? *find_slot(map, XXH64(key, n_key, 0), key, n_key) : NULL;
}

/* Move entries back that the empty slot at i separates from their hash's slot. */
static void close_gap(struct hash_map *map, size_t i)
{
	size_t mask = map->n_slots - 1;

	for (size_t k = (i + 1) & mask; map->slots[k]; k = (k + 1) & mask) {
		/* How far the entry is past its first slot, and past the gap. */
		if (((k - map->slots[k]->hash) & mask) < ((k - i) & mask))
			continue;
		map->slots[i] = map->slots[k];
		map->slots[k] = NULL;
		i = k;
	}
}

bool torsh_hash_map_remove(struct hash_map *map, const void *key, size_t n_key, size_t *value)
{
	struct hash_entry **slot = map->n ? find_slot(map, XXH64(key, n_key, 0), key, n_key) : NULL;

	if (!slot || !*slot)
		return false;
	*value = (*slot)->value;
	free(*slot);
	*slot = NULL;
	map->n--;
	close_gap(map, (size_t)(slot - map->slots));
	return true;
}

const struct hash_entry *torsh_hash_map_next(const struct hash_map *map, size_t *at)
{
	while (*at < map->n_slots) {
		const struct hash_entry *entry = map->slots[(*at)++];

		if (entry)
			return entry;
	}
	return NULL;
}

void torsh_hash_map_free_values(struct hash_map *map, void (*free_value)(void *))
{
	const struct hash_entry *entry;

	for (size_t at = 0; (entry = torsh_hash_map_next(map, &at));)
		free_value((void *)entry->value);
	torsh_hash_map_free(map);
}

void torsh_hash_map_free(struct hash_map *map)
{
	for (size_t i = 0; i < map->n_slots; i++)
		free(map->slots[i]);
	free(map->slots);
	*map = (struct hash_map){0};
}
