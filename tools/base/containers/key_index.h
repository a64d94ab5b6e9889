/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A hash index from 64-bit keys to numbers, which only grows. Unlike hash_map.h it stores its keys
 * in the slots, allocates nothing per entry and is inlined, because walks over millions of events
 * use it. Its keys are pairs (parent, address) of stacks, and hashes of rows that the caller
 * compares.
 */
#ifndef TORSH_BASE_CONTAINERS_KEY_INDEX_H
#define TORSH_BASE_CONTAINERS_KEY_INDEX_H

#include <stdint.h>

/* key 0: an empty slot. Packed into 12 bytes: an index of millions is as large as what it finds. */
struct key_slot {
	uint64_t key;
	uint32_t number;
} __attribute__((packed, aligned(4)));

struct key_index {
	struct key_slot *slots;
	uint32_t mask, shift; /* shift: 64 - bits of the mask */
	uint32_t n_keys;
};

/* Create an empty index. */
void torsh_key_index_create(struct key_index *index);

/* Free the index. */
void torsh_key_index_destroy(struct key_index *index);

/* Double the slots. At least half of them are empty, so that an insertion never fails. */
void torsh_key_index_double(struct key_index *index);

/*
 * Returns the slot of key, which is not 0: its own, or an empty one, which torsh_key_index_fill
 * must fill before the next call.
 */
static inline struct key_slot *torsh_key_index_find(const struct key_index *index, uint64_t key)
{
	uint32_t i = (uint32_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> index->shift);

	while (index->slots[i].key != key && index->slots[i].key)
		i = (i + 1) & index->mask;
	return &index->slots[i];
}

/* Fill the empty slot that torsh_key_index_find returned for the key. */
static inline void torsh_key_index_fill(struct key_index *index, struct key_slot *slot,
					uint64_t key, uint32_t number)
{
	slot->key = key;
	slot->number = number;
	if (++index->n_keys > index->mask / 2)
		torsh_key_index_double(index);
}

#endif
