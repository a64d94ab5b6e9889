/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/producer/key_map.h"

#include <stdbool.h>
#include <stddef.h>

#include "shim/sys.h"

#define FIRST_BITS 12
#define LAST_BITS 24
#define GROWTH_BITS 2
#define POPULATED_BITS 16 /* keys are spread: a few hundred touch all of a table of this size */

struct key_entry {
	_Atomic uint64_t key; /* set once */
	_Atomic uint64_t value; /* set once; 0: its thread has not stored it yet */
};

struct key_table {
	struct key_table *older; /* smaller; holds the keys that this table lacks */
	uint32_t bits;
	_Atomic uint32_t n_used;
	struct key_entry entries[];
};

static size_t first_entry(const struct key_table *table, uint64_t key)
{
	return key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - table->bits);
}

static bool is_full(const struct key_table *table)
{
	return atomic_load_explicit(&table->n_used, memory_order_relaxed) >=
	       (1u << table->bits) / 2;
}

/* The entry of key, or the empty one where it belongs. A table is never more than half full. */
static struct key_entry *find_entry(struct key_table *table, uint64_t key)
{
	for (size_t i = first_entry(table, key);; i++) {
		struct key_entry *entry = &table->entries[i & ((1u << table->bits) - 1)];
		uint64_t found = atomic_load_explicit(&entry->key, memory_order_relaxed);

		if (!found || found == key)
			return entry;
	}
}

uint64_t torsh_key_map_find(struct key_map *map, uint64_t key)
{
	/* Pairs with the release in add_table. */
	struct key_table *table = atomic_load_explicit(&map->newest, memory_order_acquire);

	for (; table; table = table->older) {
		struct key_entry *entry = find_entry(table, key);
		uint64_t value = 0;

		if (atomic_load_explicit(&entry->key, memory_order_relaxed) == key)
			value = atomic_load_explicit(&entry->value, memory_order_acquire);
		if (value)
			return value;
	}
	return 0;
}

/* Put a larger table in front of current, which is never freed because it still has readers. */
static struct key_table *add_table(struct key_map *map, struct key_table *current)
{
	uint32_t bits = current ? current->bits + GROWTH_BITS : FIRST_BITS;
	size_t n_bytes = sizeof(struct key_table) + (sizeof(struct key_entry) << bits);
	struct key_table *table = bits <= LAST_BITS ? torsh_sys_pages(n_bytes) : NULL;

	if (!table)
		return NULL;
	if (bits <= POPULATED_BITS)
		torsh_sys_populate(table, n_bytes);
	table->older = current;
	table->bits = bits;
	/* Pairs with the acquire loads of newest. */
	if (atomic_compare_exchange_strong_explicit(&map->newest, &current, table,
						    memory_order_acq_rel, memory_order_acquire))
		return table;
	torsh_sys_munmap(table, n_bytes);
	return current;
}

uint64_t torsh_key_map_add(struct key_map *map, uint64_t key, uint64_t value)
{
	struct key_table *table = atomic_load_explicit(&map->newest, memory_order_acquire);

	if (!table || is_full(table))
		table = add_table(map, table);
	while (table && !is_full(table)) {
		struct key_entry *entry = find_entry(table, key);
		uint64_t found = 0, winner = 0;

		if (!atomic_compare_exchange_strong(&entry->key, &found, key) && found != key)
			continue;
		if (!found)
			atomic_fetch_add_explicit(&table->n_used, 1, memory_order_relaxed);
		/*
		 * Pairs with the acquire in torsh_key_map_find: what the value refers to was
		 * written before.
		 */
		return atomic_compare_exchange_strong_explicit(&entry->value, &winner, value,
							       memory_order_release,
							       memory_order_acquire)
			       ? value
			       : winner;
	}
	return value;
}
