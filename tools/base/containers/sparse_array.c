/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/containers/sparse_array.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

#define PIECE_BYTES 4096u /* upper bound of a piece, unless one item is larger */

void torsh_sparse_array_create(struct sparse_array *array, size_t item_bytes)
{
	*array = (struct sparse_array){.item_bytes = item_bytes};
	while (item_bytes << (array->piece_bits + 1) <= PIECE_BYTES)
		array->piece_bits++;
}

void torsh_sparse_array_destroy(struct sparse_array *array)
{
	for (size_t i = 0; i < array->n_pieces; i++)
		free(array->pieces[i]);
	free(array->pieces);
	*array = (struct sparse_array){0};
}

void *torsh_sparse_array_add(struct sparse_array *array, size_t i)
{
	size_t piece = i >> array->piece_bits;

	array->pieces = torsh_array_extend(array->pieces, piece + 1, &array->n_pieces,
					   sizeof(*array->pieces));
	array->pieces[piece] =
		torsh_need(calloc((size_t)1 << array->piece_bits, array->item_bytes));
	return torsh_sparse_array_find(array, i);
}

void *torsh_sparse_array_next(const struct sparse_array *array, size_t *i)
{
	size_t piece = *i >> array->piece_bits;

	if (piece < array->n_pieces && array->pieces[piece])
		return torsh_sparse_array_find(array, *i);
	while (piece < array->n_pieces && !array->pieces[piece])
		piece++;
	*i = piece << array->piece_bits;
	return torsh_sparse_array_find(array, *i);
}
