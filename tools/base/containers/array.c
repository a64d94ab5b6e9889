/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/containers/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/memory.h"

#define ROOM_LEAST 16u

/* Grow to `larger` items, unless there is room for n. Returns NULL without memory. */
static void *grow(void *items, size_t n, size_t larger, size_t *n_room, size_t item_bytes)
{
	if (n <= *n_room && items)
		return items;
	if (n > UINT32_MAX || larger > UINT32_MAX)
		return NULL;
	/* reallocarray refuses a product over SIZE_MAX. */
	items = reallocarray(items, larger, item_bytes);
	if (!items)
		return NULL;
	torsh_memory_advise(items, larger * item_bytes);
	*n_room = larger;
	return items;
}

void *torsh_array_try_grow(void *items, size_t n, size_t *n_room, size_t item_bytes)
{
	return grow(items, n, n + n / 2 + ROOM_LEAST, n_room, item_bytes);
}

void *torsh_array_reserve(void *items, size_t n, size_t *n_room, size_t item_bytes)
{
	if (n >= *n_room)
		items = torsh_memory_or_die(torsh_array_try_grow(items, n + 1, n_room, item_bytes));
	memset((char *)items + n * item_bytes, 0, item_bytes);
	return items;
}

void *torsh_array_extend(void *items, size_t n, size_t *n_room, size_t item_bytes)
{
	size_t n_old = *n_room;

	if (n <= n_old)
		return items;
	/* All room is zeroed, and so takes memory. */
	items = torsh_memory_or_die(grow(items, n, n + n / 8 + ROOM_LEAST, n_room, item_bytes));
	memset((char *)items + n_old * item_bytes, 0, (*n_room - n_old) * item_bytes);
	return items;
}
