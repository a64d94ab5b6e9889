/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/store/columns_bytes.h"

#include <errno.h>
#include <stdlib.h>

/* a recording has some hundred columns for each process, most of them short */
#define CAPACITY_FIRST 256u

int torsh_bytes_reserve(struct column_bytes *column, size_t n)
{
	size_t capacity = column->capacity ? column->capacity : CAPACITY_FIRST;
	uint8_t *larger;

	if (column->capacity - column->n >= n)
		return 0;
	while (capacity - column->n < n)
		capacity *= 2;
	larger = realloc(column->bytes, capacity);
	if (!larger)
		return -ENOMEM;
	column->bytes = larger;
	column->capacity = capacity;
	return 0;
}
