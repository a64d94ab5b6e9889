/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An agent that does nothing: the zero of every benchmark. It stands before the malloc family and
 * calls the next definition, which is what any preloaded profiler pays before it does anything of
 * its own.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define BOOT_BYTES 65536

static void *(*next_malloc)(size_t);
static void *(*next_calloc)(size_t, size_t);
static void *(*next_realloc)(void *, size_t);
static void (*next_free)(void *);
static int (*next_posix_memalign)(void **, size_t, size_t);
static void *(*next_aligned_alloc)(size_t, size_t);
static void *(*next_memalign)(size_t, size_t);

/* dlsym may allocate before it has found calloc. */
static char boot[BOOT_BYTES] __attribute__((aligned(16)));
static size_t n_boot;

static void *boot_block(size_t n)
{
	void *block = boot + n_boot;

	n_boot += (n + 15) & ~(size_t)15;
	return n_boot <= BOOT_BYTES ? block : NULL;
}

__attribute__((constructor)) static void find_next(void)
{
	next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
	next_calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
	next_realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
	next_posix_memalign = (int (*)(void **, size_t, size_t))dlsym(RTLD_NEXT, "posix_memalign");
	next_aligned_alloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "aligned_alloc");
	next_memalign = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "memalign");
	next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
}

void *malloc(size_t n)
{
	return next_malloc ? next_malloc(n) : boot_block(n);
}

void *calloc(size_t n, size_t size)
{
	return next_calloc ? next_calloc(n, size) : boot_block(n * size);
}

void *realloc(void *block, size_t n)
{
	if ((char *)block >= boot && (char *)block < boot + BOOT_BYTES) {
		void *other = malloc(n);

		return other ? memcpy(other, block, n) : NULL;
	}
	return next_realloc ? next_realloc(block, n) : boot_block(n);
}

void free(void *block)
{
	if ((char *)block >= boot && (char *)block < boot + BOOT_BYTES)
		return;
	next_free(block);
}

int posix_memalign(void **out, size_t alignment, size_t n)
{
	return next_posix_memalign(out, alignment, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
	return next_aligned_alloc(alignment, n);
}

void *memalign(size_t alignment, size_t n)
{
	return next_memalign(alignment, n);
}
