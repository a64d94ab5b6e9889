/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The simplest malloc, preloaded after the agent: its calls can be left in their middle, which
 * glibc's can't. Nothing is ever given back.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HEAP_BYTES (UINT64_C(1) << 30)

static _Alignas(4096) char heap[HEAP_BYTES];
static _Atomic size_t used = 16;

void *memalign(size_t alignment, size_t n)
{
	size_t wanted = n + sizeof(size_t) + alignment + 16,
	       at = atomic_fetch_add(&used, (wanted + 15) & ~(size_t)15);
	uintptr_t place = ((uintptr_t)heap + at + sizeof(size_t) + alignment - 1) &
			  ~(uintptr_t)(alignment - 1);

	if (at + wanted > HEAP_BYTES)
		return NULL;
	memcpy((void *)(place - sizeof(n)), &n, sizeof(n));
	return (void *)place;
}

size_t malloc_usable_size(void *p)
{
	size_t n = 0;

	if (p)
		memcpy(&n, (char *)p - sizeof(n), sizeof(n));
	return n;
}

void *malloc(size_t n)
{
	return memalign(16, n);
}

void *calloc(size_t n, size_t size)
{
	return memalign(16, n * size);
}

void free(void *p)
{
	(void)p;
}

void *realloc(void *p, size_t n)
{
	size_t old = malloc_usable_size(p);
	void *moved = memalign(16, n);

	if (p && moved)
		memcpy(moved, p, old < n ? old : n);
	return moved;
}

int posix_memalign(void **out, size_t alignment, size_t n)
{
	*out = memalign(alignment, n);
	return *out ? 0 : 12;
}

void *aligned_alloc(size_t alignment, size_t n)
{
	return memalign(alignment, n);
}
