/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/libc/boot.h"

#include <errno.h>
#include <stdatomic.h>

_Alignas(4096) char torsh_boot_heap[BOOT_BYTES];

static _Atomic size_t used, n_blocks, n_requested_bytes;

/* Each block follows its size. */
void *torsh_boot_alloc(size_t n_bytes, size_t alignment)
{
	size_t at = atomic_load_explicit(&used, memory_order_relaxed), begin;

	if (alignment < 16)
		alignment = 16;
	do {
		begin = (at + sizeof(size_t) + alignment - 1) & ~(alignment - 1);
		if (alignment > BOOT_BYTES || n_bytes > BOOT_BYTES ||
		    begin > BOOT_BYTES - n_bytes) {
			errno = ENOMEM;
			return NULL;
		}
	} while (!atomic_compare_exchange_weak_explicit(
		&used, &at, begin + n_bytes, memory_order_relaxed, memory_order_relaxed));
	((size_t *)(torsh_boot_heap + begin))[-1] = n_bytes;
	atomic_fetch_add_explicit(&n_blocks, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&n_requested_bytes, n_bytes, memory_order_relaxed);
	return torsh_boot_heap + begin;
}

size_t torsh_boot_size(const void *block)
{
	return ((const size_t *)block)[-1];
}

size_t torsh_boot_served(size_t *n_bytes)
{
	*n_bytes = atomic_load_explicit(&n_requested_bytes, memory_order_relaxed);
	return atomic_load_explicit(&n_blocks, memory_order_relaxed);
}
