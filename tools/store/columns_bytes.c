/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/store/columns_bytes.h"

#include <errno.h>

#include "tools/base/containers/array.h"

/* minimum size of a column: a recording has some hundred columns per process, most of them short */
#define WANTED_LEAST 160u

int torsh_bytes_reserve(struct column_bytes *column, size_t n)
{
	size_t n_wanted = column->n + n;
	uint8_t *larger;

	if (column->capacity - column->n >= n)
		return 0;
	larger = torsh_array_try_grow(column->bytes,
				      n_wanted > WANTED_LEAST ? n_wanted : WANTED_LEAST,
				      &column->capacity, 1);
	if (!larger)
		return -ENOMEM;
	column->bytes = larger;
	return 0;
}
