/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A hash map from keys of any bytes to numbers, usually from a row's identity to its index in an
 * array. A zeroed map is empty. Entries do not move until the map is freed, and cannot be removed.
 * Running out of memory ends the program.
 *
 * For 64-bit keys with measured look-ups see key_index.h; for removable entries by address see
 * live_table.h.
 */
#ifndef TORSH_BASE_CONTAINERS_HASH_MAP_H
#define TORSH_BASE_CONTAINERS_HASH_MAP_H

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

/* torsh_hash_map_put for a text: the entry's key is a copy of it. */
static inline const struct hash_entry *torsh_hash_map_put_text(struct hash_map *map,
							       const char *text, size_t value)
{
	return torsh_hash_map_put(map, text, strlen(text) + 1, value);
}

/* Free all entries; the map is empty afterwards. */
void torsh_hash_map_free(struct hash_map *map);

#endif
