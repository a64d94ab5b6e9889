/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A hash map from keys of any bytes to numbers, mostly from what identifies a row to the row's
 * place in an array. Zeroed memory is an empty map. Entries stay where they are until the map is
 * freed; none is removed. Running out of memory ends the program.
 *
 * Where keys are 64-bit numbers and a look-up is measured: key_index.h. Where keys go again, by
 * address: live_table.h.
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
 * The entry of the key, which is added with the value where it is new; the map keeps a copy of the
 * key. A struct as a key must have no padding, or have it zeroed.
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
