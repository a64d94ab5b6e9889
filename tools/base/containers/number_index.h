/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A hash index of the rows of a table that only grows: 4 bytes per slot, 5 to 8 per row. The rows
 * are numbered from 1 and hold the keys. A slot has a row's number in its low bits and the low bits
 * of the row's hash in the others, so that the rows of other keys are rarely visited.
 *
 * The index does not store whole hashes: before it grows, the owner hashes all its rows again.
 */
#ifndef TORSH_BASE_CONTAINERS_NUMBER_INDEX_H
#define TORSH_BASE_CONTAINERS_NUMBER_INDEX_H

#include <stdbool.h>
#include <stdint.h>

struct number_index {
	uint32_t *slots; /* 0: empty */
	uint32_t n_slots, n_used;
	uint32_t number_mask; /* the bits of a slot that hold the number */
	uint32_t number_bits;
};

/* Returns a hash of a pair of numbers, such as the parent and the address of a stack. */
static inline uint32_t torsh_number_index_hash(uint32_t a, uint32_t b)
{
	return (uint32_t)((((uint64_t)a << 32 | b) * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

/* Create an empty index. */
void torsh_number_index_create(struct number_index *index);

/* Free the index. */
void torsh_number_index_destroy(struct number_index *index);

/* Returns true if one more row needs torsh_number_index_grow first. */
static inline bool torsh_number_index_is_full(const struct number_index *index)
{
	return index->n_used >= index->n_slots / 5 * 4;
}

/* Replace the index by an empty one with half as many slots again; the owner adds all rows. */
void torsh_number_index_grow(struct number_index *index);

/* Add a row that is not in the index, which must not be full. */
void torsh_number_index_add(struct number_index *index, uint32_t number, uint32_t hash);

/* Add the rows 1 to n - 1 to an index that has just grown. */
void torsh_number_index_add_all(struct number_index *index, const uint32_t *hashes, uint32_t n);

/* Returns the number of the first slot for a hash. */
static inline uint32_t torsh_number_index_home(const struct number_index *index, uint32_t hash)
{
	return (uint32_t)((uint64_t)hash * index->n_slots >> 32);
}

/*
 * Returns the number of a row that probably has the hash, to be prefetched: of one of the first two
 * slots. No branch, because neither is likely enough.
 */
static inline uint32_t torsh_number_index_guess(const struct number_index *index, uint32_t hash)
{
	uint32_t tag = (uint32_t)((uint64_t)hash << index->number_bits),
		 i = torsh_number_index_home(index, hash);
	uint32_t first = index->slots[i], second = index->slots[i + (i + 1 < index->n_slots)];
	uint32_t is_first = ((first ^ tag) & ~index->number_mask) == 0;

	return (second ^ ((first ^ second) & (0 - is_first))) & index->number_mask;
}

/*
 * Returns the number of the next row that may have the hash, from slot *i on, which moves past it;
 * 0: there is none.
 */
static inline uint32_t torsh_number_index_next(const struct number_index *index, uint32_t hash,
					       uint32_t *i)
{
	uint32_t tag = (uint32_t)((uint64_t)hash << index->number_bits), slot;

	while ((slot = index->slots[*i])) {
		*i = *i + 1 == index->n_slots ? 0 : *i + 1;
		if (((slot ^ tag) & ~index->number_mask) == 0)
			return slot & index->number_mask;
	}
	return 0;
}

#endif
