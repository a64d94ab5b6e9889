/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The growing array of all tools. The caller owns the items, which come from malloc, and keeps
 * their number and the reserved number, all 0 at first. An array grows by half (by an eighth in
 * torsh_array_extend), in huge pages if it is large, and holds fewer than 2^32 items, because they
 * are numbered with 32 bits. Running out of memory ends the program (memory.h), except in
 * torsh_array_try_grow.
 */
#ifndef TORSH_BASE_CONTAINERS_ARRAY_H
#define TORSH_BASE_CONTAINERS_ARRAY_H

#include <stddef.h>

/*
 * Reserve item number n, zeroed, after the n existing ones. Returns the array, which may have
 * moved. Later items are not touched: reserved items that are not used take no memory.
 */
void *torsh_array_reserve(void *items, size_t n, size_t *n_room, size_t item_bytes);

/* Reserve n items of an array that is indexed: all new ones up to *n_room are zero. */
void *torsh_array_extend(void *items, size_t n, size_t *n_room, size_t item_bytes);

/*
 * Reserve at least n items; the new ones are not initialised. Returns the array, or NULL without
 * memory: then nothing has changed.
 */
void *torsh_array_try_grow(void *items, size_t n, size_t *n_room, size_t item_bytes);

#endif
