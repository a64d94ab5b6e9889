/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The growing array of all tools: the caller has the items, from malloc, their number and their
 * room, all 0 at first. An array grows to half more than is wanted, in huge pages where it is
 * large, and holds fewer than 2^32 items: they are numbered with 32 bits. Without memory the
 * program ends (memory.h), but for torsh_array_try_grow.
 */
#ifndef TORSH_BASE_CONTAINERS_ARRAY_H
#define TORSH_BASE_CONTAINERS_ARRAY_H

#include <stddef.h>

/*
 * Room for item number n, which is zeroed, after the n that are there. Returns the array, perhaps
 * moved. No item after that one is touched: what is reserved and not yet used takes no memory.
 */
void *torsh_array_reserve(void *items, size_t n, size_t *n_room, size_t item_bytes);

/* Room for n items, for an array that is indexed: all new ones up to *n_room are zero. */
void *torsh_array_extend(void *items, size_t n, size_t *n_room, size_t item_bytes);

/*
 * Room for at least n items, the new ones not initialised. Returns the array, or NULL without
 * memory: then nothing has changed.
 */
void *torsh_array_try_grow(void *items, size_t n, size_t *n_room, size_t item_bytes);

#endif
