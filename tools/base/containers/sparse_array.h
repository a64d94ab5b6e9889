/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An array with sparse indices, such as a table indexed by a number's low bits: a piece is
 * allocated at the first use of one of its items. Items do not move. Unlike in hash_map.h a
 * look-up hashes nothing, and iteration follows the order of indices. Running out of memory ends
 * the program.
 */
#ifndef TORSH_BASE_CONTAINERS_SPARSE_ARRAY_H
#define TORSH_BASE_CONTAINERS_SPARSE_ARRAY_H

#include <stddef.h>

struct sparse_array {
	size_t item_bytes;
	unsigned piece_bits; /* a piece has 2^piece_bits items */
	void **pieces; /* NULL: not allocated yet */
	size_t n_pieces;
};

/* Create an empty array of items of that size. */
void torsh_sparse_array_create(struct sparse_array *array, size_t item_bytes);

/* Free all items. */
void torsh_sparse_array_destroy(struct sparse_array *array);

/* Returns the number of items up to the last one that may be allocated. */
static inline size_t torsh_sparse_array_room(const struct sparse_array *array)
{
	return array->n_pieces << array->piece_bits;
}

/* Returns the i-th item, or NULL if its piece is not allocated. */
static inline void *torsh_sparse_array_find(const struct sparse_array *array, size_t i)
{
	size_t piece = i >> array->piece_bits, within = i & (((size_t)1 << array->piece_bits) - 1);

	if (piece >= array->n_pieces || !array->pieces[piece])
		return NULL;
	return (char *)array->pieces[piece] + within * array->item_bytes;
}

/* Allocate the piece of the i-th item. Returns that item. */
void *torsh_sparse_array_add(struct sparse_array *array, size_t i);

/* Returns the i-th item, which is initially zeroed; allocates its piece if needed. */
static inline void *torsh_sparse_array_at(struct sparse_array *array, size_t i)
{
	void *item = torsh_sparse_array_find(array, i);

	return item ? item : torsh_sparse_array_add(array, i);
}

/*
 * Returns the first item from *i on in an allocated piece and sets *i to its index; NULL after the
 * last one.
 */
void *torsh_sparse_array_next(const struct sparse_array *array, size_t *i);

#endif
