/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The boot heap: memory for the loader's allocations while the next allocator is looked up. A
 * lock-free bump allocator; blocks are never reused, and are recognised by their address.
 */
#ifndef TORSH_SHIM_LIBC_BOOT_H
#define TORSH_SHIM_LIBC_BOOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOOT_BYTES 65536u

extern char torsh_boot_heap[BOOT_BYTES];

/* Returns zeroed memory; alignment 0 means 16. NULL when the heap is used up. Any thread. */
void *torsh_boot_alloc(size_t n_bytes, size_t alignment);

/* The requested size of a block of the boot heap. */
size_t torsh_boot_size(const void *block);

/* The number of blocks so far; *n_bytes: the sum of their requested sizes. */
size_t torsh_boot_served(size_t *n_bytes);

/* Whether the block belongs to the boot heap. */
static inline bool torsh_boot_owns(const void *block)
{
	return (uintptr_t)block - (uintptr_t)torsh_boot_heap < BOOT_BYTES;
}

#endif
