/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A hash map from keys of any bytes to numbers, usually from a row's identity to its index in an
 * array. A zeroed map is empty. Entries do not move until they are removed or the map is freed.
 * Running out of memory ends the program. The map of all tools; the headers of key_index,
 * live_table, sparse_array and address_ranges give the reason for each exception.
 */
#ifndef TORSH_BASE_CONTAINERS_HASH_MAP_H
#define TORSH_BASE_CONTAINERS_HASH_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct hash_entry {
	uint64_t hash;
	size_t value;
	size_t n_key;
	char key[];
};

struct hash_map {
	struct hash_entry **slots;
	size_t n, n_slots; /* n_slots: 0 or a power of 2, at most half of them used */
};

/*
 * Returns the key's entry; a new key is copied and gets the value. A struct used as a key must have
 * no padding, or zeroed padding.
 */
const struct hash_entry *torsh_hash_map_put(struct hash_map *map, const void *key, size_t n_key,
					    size_t value);

/* The entry of the key, or NULL. */
const struct hash_entry *torsh_hash_map_find(const struct hash_map *map, const void *key,
					     size_t n_key);

/* Remove the key. Returns true and sets *value to its value; false: it is not there. */
bool torsh_hash_map_remove(struct hash_map *map, const void *key, size_t n_key, size_t *value);

/*
 * Iterate over all entries, in any order, while the map does not change. Start with *at = 0;
 * returns NULL after the last.
 */
const struct hash_entry *torsh_hash_map_next(const struct hash_map *map, size_t *at);

/* torsh_hash_map_put for a text: the entry's key is a copy of it. */
static inline const struct hash_entry *torsh_hash_map_put_text(struct hash_map *map,
							       const char *text, size_t value)
{
	return torsh_hash_map_put(map, text, strlen(text) + 1, value);
}

/* Free all entries; the map is empty afterwards. */
void torsh_hash_map_free(struct hash_map *map);

/* The same where values are pointers from malloc: free_value frees each of them. */
void torsh_hash_map_free_values(struct hash_map *map, void (*free_value)(void *));

#endif
