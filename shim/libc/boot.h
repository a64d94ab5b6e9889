/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The boot heap: memory for what the loader allocates while the next allocator is looked up. A
 * lock-free bump allocator; blocks are never given back, and always recognised.
 */
#ifndef TORSH_SHIM_LIBC_BOOT_H
#define TORSH_SHIM_LIBC_BOOT_H

#include <stddef.h>
#include <stdint.h>

#define BOOT_BYTES 65536u

extern char torsh_boot_heap[BOOT_BYTES];

/* Zeroed; alignment 0 means 16. NULL when the heap is used up. */
void *torsh_boot_alloc(size_t n_bytes, size_t alignment);

/* The size that a block of the boot heap was requested with. */
size_t torsh_boot_size(const void *block);

/* How many blocks were served so far; *n_bytes: their requested sizes. */
size_t torsh_boot_served(size_t *n_bytes);

/* Whether the block is of the boot heap. */
static inline int torsh_boot_owns(const void *block)
{
	return (uintptr_t)block - (uintptr_t)torsh_boot_heap < BOOT_BYTES;
}

#endif
