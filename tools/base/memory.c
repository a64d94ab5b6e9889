/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/memory.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/base/die.h"

#define SMALL_PAGE 4096u
#define CACHE_LINE ((size_t)64)
#define HUGE_PAGE ((size_t)2 << 20)
#define LARGE (1 << 20) /* a block of this size in bytes has its own pages */

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1 */
#endif

static bool is_writer;

void *torsh_memory_or_die(void *p)
{
	if (p || !is_writer)
		return torsh_need(p);
	fputs("torsh: the writer is out of memory: the recording ends here\n", stderr);
	_exit(1);
}

/*
 * Includes the first and the last page: the kernel moves a mapping only if all of it has the same
 * advice, and malloc puts a block's header at the start of its mapping.
 */
void torsh_memory_advise(void *items, size_t n_bytes)
{
	uintptr_t start = (uintptr_t)items & ~(uintptr_t)(SMALL_PAGE - 1);
	uintptr_t end =
		((uintptr_t)items + n_bytes + SMALL_PAGE - 1) & ~(uintptr_t)(SMALL_PAGE - 1);

	if (n_bytes >= HUGE_PAGE)
		madvise((void *)start, end - start, MADV_HUGEPAGE);
}

/*
 * By default the C library raises its mmap threshold each time that a large block is freed, and
 * then puts large blocks among the small ones.
 */
void torsh_memory_start(bool is_in_writer)
{
	is_writer = is_in_writer;
	mallopt(M_MMAP_THRESHOLD, LARGE);
}

void *torsh_memory_new(size_t n, size_t n_bytes)
{
	return torsh_memory_or_die(calloc(n ? n : 1, n_bytes));
}

void *torsh_memory_alloc(size_t n_bytes)
{
	return torsh_memory_or_die(malloc(n_bytes));
}

void *torsh_memory_table(size_t n, size_t n_bytes)
{
	void *items = torsh_memory_new(n, n_bytes);

	torsh_memory_advise(items, n * n_bytes);
	return items;
}

void *torsh_memory_lines(size_t n, size_t n_bytes)
{
	size_t n_all = (n * n_bytes + CACHE_LINE - 1) & ~(CACHE_LINE - 1);

	return memset(torsh_memory_or_die(aligned_alloc(CACHE_LINE, n_all)), 0, n_all);
}

/* Returns n_bytes of whole pages at a multiple of 2 MiB; MAP_FAILED without memory. */
static char *map_aligned(size_t n_bytes, int flags)
{
	size_t n_all = n_bytes + HUGE_PAGE, n_before;
	char *start = mmap(NULL, n_all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags,
			   -1, 0);

	if (start == MAP_FAILED)
		return start;
	n_before = -(uintptr_t)start % HUGE_PAGE;
	if (n_before)
		munmap(start, n_before);
	munmap(start + n_before + n_bytes, HUGE_PAGE - n_before);
	return start + n_before;
}

void *torsh_memory_region(size_t n_bytes)
{
	char *start = map_aligned(n_bytes, MAP_NORESERVE);

	if (start == MAP_FAILED)
		torsh_memory_or_die(NULL);
	torsh_memory_advise(start, n_bytes);
	return start;
}

void *torsh_memory_pages(size_t n_bytes)
{
	size_t n_whole = (n_bytes + SMALL_PAGE - 1) & ~(size_t)(SMALL_PAGE - 1);
	void *start = map_aligned(n_whole, 0);

	return torsh_memory_or_die(start == MAP_FAILED ? NULL : start);
}

void torsh_memory_collapse(void *start, size_t n_bytes)
{
	size_t n_whole = n_bytes & ~(HUGE_PAGE - 1);

	if (n_whole)
		madvise(start, n_whole, MADV_COLLAPSE);
}

void torsh_memory_region_empty(void *start, size_t n_bytes)
{
	if (madvise(start, n_bytes, MADV_DONTNEED))
		memset(start, 0, n_bytes);
}

void torsh_memory_region_free(void *region, size_t n_bytes)
{
	munmap(region, n_bytes);
}

void torsh_memory_trim(void)
{
	malloc_trim(0);
}

char *torsh_memory_text(const char *text)
{
	return torsh_memory_or_die(strdup(text));
}
