/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An array whose indices are sparse, such as a table by a number's low bits: memory for a piece of
 * it is allocated when an item there is first used, and items don't move. Running out of memory
 * ends the program.
 */
#ifndef TORSH_BASE_CONTAINERS_SPARSE_ARRAY_H
#define TORSH_BASE_CONTAINERS_SPARSE_ARRAY_H

#include <stddef.h>

struct sparse_array {
	size_t item_bytes;
	unsigned piece_bits; /* a piece holds 2 to the power of it items */
	void **pieces; /* NULL: nothing there was wanted yet */
	size_t n_pieces;
};

/* Create an empty array of items of that size. */
void torsh_sparse_array_create(struct sparse_array *array, size_t item_bytes);

/* Free all items. */
void torsh_sparse_array_destroy(struct sparse_array *array);

/* The i-th item, or NULL where none near it was wanted yet. */
static inline void *torsh_sparse_array_find(const struct sparse_array *array, size_t i)
{
	size_t piece = i >> array->piece_bits, within = i & (((size_t)1 << array->piece_bits) - 1);

	if (piece >= array->n_pieces || !array->pieces[piece])
		return NULL;
	return (char *)array->pieces[piece] + within * array->item_bytes;
}

/* Take memory for the i-th item and those near it. Returns that item. */
void *torsh_sparse_array_add(struct sparse_array *array, size_t i);

/* The i-th item, zeros at first. */
static inline void *torsh_sparse_array_at(struct sparse_array *array, size_t i)
{
	void *item = torsh_sparse_array_find(array, i);

	return item ? item : torsh_sparse_array_add(array, i);
}

/*
 * The first item from *i on that memory was taken for, and *i its number; NULL after the last one.
 */
void *torsh_sparse_array_next(const struct sparse_array *array, size_t *i);

#endif
