/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Each entry point of the malloc family, from a function of its own that keeps its block:
 * leak_NAME. What is kept is in test/e2e/heap/heap.py. Before that, the same calls with their
 * blocks freed again.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static void *leak_malloc(void)
{
	return malloc(1001);
}

static void *leak_calloc(void)
{
	return calloc(7, 11);
}

static void *leak_realloc_of_null(void)
{
	return realloc(NULL, 1003);
}

static void *leak_realloc_grown(void)
{
	return realloc(malloc(10), 5000);
}

static void *leak_realloc_shrunk(void)
{
	return realloc(malloc(5000), 10);
}

/* A block that can't stay where it is. */
static void *leak_realloc_moved(void)
{
	void *block = malloc(64), *behind = malloc(64);

	block = realloc(block, 400000);
	free(behind);
	return block;
}

static void *leak_realloc_mapped(void)
{
	return realloc(malloc(3u << 20), 9u << 20);
}

static void *leak_reallocarray(void)
{
	return reallocarray(malloc(3), 9, 13);
}

static void *leak_posix_memalign(void)
{
	void *block = NULL;

	return posix_memalign(&block, 256, 1005) ? NULL : block;
}

static void *leak_aligned_alloc(void)
{
	return aligned_alloc(64, 1006);
}

static void *leak_memalign(void)
{
	return memalign(512, 1007);
}

static void *leak_valloc(void)
{
	return valloc(1008);
}

/* Rounds up to whole pages; the requested size is what was passed. */
static void *leak_pvalloc(void)
{
	return pvalloc(1009);
}

static void *leak_strdup(void)
{
	return strdup("0123456789");
}

static void *leak_strndup(void)
{
	return strndup("0123456789", 4);
}

static void *leak_wcsdup(void)
{
	return wcsdup(L"0123");
}

static void *leak_zero(void)
{
	return malloc(0);
}

static void *leak_large(void)
{
	return malloc(100u << 20);
}

/* Asked for again by a name found at run time, as plugins do. */
static void *leak_by_dlsym(void)
{
	void *(*found)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "malloc");

	return found(1011);
}

static void *resize_in_vain(void)
{
	volatile size_t too_much = SIZE_MAX / 2;
	char *block = malloc(1012);
	void *other;

	if (realloc(block, too_much) || reallocarray(block, too_much, 4) || calloc(too_much, 4) ||
	    malloc(too_much) || !posix_memalign(&other, 3, 8))
		return NULL;
	block[1011] = 1;
	return block;
}

static void *(*const leaks[])(void) = {
	leak_malloc,	     leak_calloc,	 leak_realloc_of_null, leak_realloc_grown,
	leak_realloc_shrunk, leak_realloc_moved, leak_realloc_mapped,  leak_reallocarray,
	leak_posix_memalign, leak_aligned_alloc, leak_memalign,	       leak_valloc,
	leak_pvalloc,	     leak_strdup,	 leak_strndup,	       leak_wcsdup,
	leak_zero,	     leak_large,	 leak_by_dlsym,	       resize_in_vain,
};

#define N_LEAKS (sizeof(leaks) / sizeof(leaks[0]))

/* cfree is gone from the C library, but not from old programs. */
static void free_oddly(void *block)
{
	void (*old_free)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "cfree");

	if (old_free)
		old_free(block);
	else
		free(block);
}

/*
 * "without_pvalloc": for allocators that lack it, where the C library's would give blocks that they
 * can't free.
 */
int main(int argc, char **argv)
{
	void *(*skipped)(void) =
		argc > 1 && !strcmp(argv[1], "without_pvalloc") ? leak_pvalloc : NULL;
	void *blocks[N_LEAKS];

	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < N_LEAKS; i++) {
			blocks[i] = leaks[i] == skipped ? NULL : leaks[i]();
			if (!blocks[i] && leaks[i] != skipped)
				return 1;
		}
		/* The last round's stay. */
		for (size_t i = 0; i < N_LEAKS && round < 2; i++) {
			if (leaks[i] == skipped)
				continue;
			if (malloc_usable_size(blocks[i]) < 4)
				return 2;
			if (i % 2)
				free(blocks[i]);
			else if (i % 4)
				free_oddly(blocks[i]);
			else
				free(realloc(blocks[i],
					     0)); /* glibc frees it, others make it empty */
		}
	}
	return 0;
}
