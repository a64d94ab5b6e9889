/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The malloc family, as programs call it. A block is recorded after its allocation and before its
 * free: in between no other thread can own its address.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "shim/allocators/operators_new.h"
#include "shim/cpython/cpython_end.h"
#include "shim/hooks.h"
#include "shim/libc/boot.h"
#include "shim/libc/next.h"
#include "shim/libc/signals.h"
#include "shim/pause.h"

/* Inner calls of an operator new or delete are recorded there. */
static __attribute__((noinline)) void record_exception(void *p, size_t n, enum alloc_entry entry,
						       const void *caller, const void *frame)
{
	if (torsh_operators_contain(caller))
		return;
	torsh_heap_allocated_unpaused(p, n, entry, frame);
	torsh_lsan_allocated(p);
}

/* For a hook that called torsh_pause_is_own_at_call before the real call. */
static inline void record(void *p, size_t n, enum alloc_entry entry, const void *caller,
			  const void *frame)
{
	if (__builtin_expect(torsh_heap_exceptions, 0))
		record_exception(p, n, entry, caller, frame);
	else
		torsh_heap_allocated_unpaused(p, n, entry, frame);
}

EXPORT void *malloc(size_t n)
{
	void *p;

	if (torsh_pause_is_own_at_call())
		return torsh_next.malloc(n);
	p = torsh_next.malloc(n);
	record(p, n, ALLOC_MALLOC, HOOK_CALLER, HOOK_FRAME);
	return p;
}

EXPORT void *calloc(size_t n, size_t size)
{
	void *p;

	if (torsh_pause_is_own_at_call())
		return torsh_next.calloc(n, size);
	p = torsh_next.calloc(n, size);
	/* If the product overflows the real calloc has failed. */
	record(p, n * size, ALLOC_CALLOC, HOOK_CALLER, HOOK_FRAME);
	return p;
}

static inline void release(void *p, const void *caller)
{
	if (__builtin_expect(torsh_boot_owns(p), 0))
		return;
	if (__builtin_expect(
		    atomic_load_explicit(&torsh_cpython_end_is_watched, memory_order_relaxed), 0))
		torsh_signals_freeing();
	if (!torsh_pause_is_for_good() && !torsh_operators_is_inner(caller))
		torsh_heap_freeing(p);
	torsh_next.free(p);
}

EXPORT void free(void *p)
{
	release(p, HOOK_CALLER);
}

/* A block of the boot heap moves to the real heap; the old memory is never reused. */
static void *move_boot_block(void *p, size_t n, const void *frame)
{
	size_t size = torsh_boot_size(p);
	void *moved = torsh_next.malloc(n);

	if (moved)
		memcpy(moved, p, size < n ? size : n);
	torsh_heap_allocated(moved, n, ALLOC_REALLOC, frame);
	return moved;
}

static void *resize(void *p, size_t n, const void *frame)
{
	void *resized;

	if (__builtin_expect(torsh_boot_owns(p), 0))
		return move_boot_block(p, n, frame);
	/*
	 * Size 0 frees in some allocators and returns an empty block in others: a free, and then
	 * perhaps a new block.
	 */
	if (n == 0)
		torsh_heap_freeing(p);
	else
		torsh_heap_resizing(p);
	resized = torsh_next.realloc(p, n);
	if (resized) {
		torsh_heap_allocated(resized, n, ALLOC_REALLOC, frame);
		if (__builtin_expect(torsh_heap_exceptions, 0))
			torsh_lsan_allocated(resized);
	} else if (n != 0)
		torsh_heap_not_resized(p);
	return resized;
}

EXPORT void *realloc(void *p, size_t n)
{
	return resize(p, n, HOOK_FRAME);
}

/*
 * The C library's calls the interposed realloc: recorded here, so that the stack begins at the
 * caller.
 */
EXPORT void *reallocarray(void *p, size_t n, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(n, size, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	return resize(p, total, HOOK_FRAME);
}

EXPORT void cfree(void *p)
{
	release(p, HOOK_CALLER);
}

/* C23. Allocators that have these treat them like free; so is it done for the others. */
EXPORT void free_sized(void *p, size_t n)
{
	(void)n;
	release(p, HOOK_CALLER);
}

EXPORT void free_aligned_sized(void *p, size_t alignment, size_t n)
{
	(void)alignment;
	(void)n;
	release(p, HOOK_CALLER);
}

/* Not every allocator has the whole aligned family: the C library provides what is missing. */
static void record_aligned(void *p, size_t n, enum torsh_next_aligned by, const void *caller,
			   const void *frame)
{
	if (torsh_operators_is_inner(caller))
		return;
	if (torsh_next_is_elsewhere & 1u << by)
		torsh_heap_allocated_elsewhere(p, n, ALLOC_ALIGNED, frame);
	else
		torsh_heap_allocated(p, n, ALLOC_ALIGNED, frame);
	if (__builtin_expect(torsh_heap_exceptions, 0))
		torsh_lsan_allocated(p);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t n)
{
	int error = torsh_next.posix_memalign(out, alignment, n);

	if (!error)
		record_aligned(*out, n, NEXT_POSIX_MEMALIGN, HOOK_CALLER, HOOK_FRAME);
	return error;
}

EXPORT void *aligned_alloc(size_t alignment, size_t n)
{
	void *p = torsh_next.aligned_alloc(alignment, n);

	record_aligned(p, n, NEXT_ALIGNED_ALLOC, HOOK_CALLER, HOOK_FRAME);
	return p;
}

EXPORT void *memalign(size_t alignment, size_t n)
{
	void *p = torsh_next.memalign(alignment, n);

	record_aligned(p, n, NEXT_MEMALIGN, HOOK_CALLER, HOOK_FRAME);
	return p;
}

EXPORT void *valloc(size_t n)
{
	void *p = torsh_next.valloc(n);

	record_aligned(p, n, NEXT_VALLOC, HOOK_CALLER, HOOK_FRAME);
	return p;
}

EXPORT void *pvalloc(size_t n)
{
	void *p = torsh_next.pvalloc(n);

	record_aligned(p, n, NEXT_PVALLOC, HOOK_CALLER, HOOK_FRAME);
	return p;
}

EXPORT size_t malloc_usable_size(void *p)
{
	return torsh_boot_owns(p) ? torsh_boot_size(p) : torsh_next.malloc_usable_size(p);
}
