/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "shim/cpython/cpython_memory.h"

#include <errno.h>
#include <stddef.h>

#include "shim/hooks.h"
#include "shim/loader/elf_symbol.h"

/* PyMemAllocatorEx and PyMemAllocatorDomain, unchanged since 3.5. */
struct allocator {
	void *context;
	void *(*malloc)(void *context, size_t n);
	void *(*calloc)(void *context, size_t n, size_t size);
	void *(*realloc)(void *context, void *block, size_t n);
	void (*free)(void *context, void *block);
};

enum domain { DOMAIN_RAW, DOMAIN_MEM, DOMAIN_OBJECT, N_DOMAINS };

static struct allocator next[N_DOMAINS];

/*
 * What a domain's allocator gets from malloc or mmap is part of the blocks that it returns: only
 * the blocks are recorded.
 */
static void *domain_malloc(void *context, size_t n)
{
	const struct allocator *allocator = context;
	void *outer = torsh_heap_enter_allocator(), *p = allocator->malloc(allocator->context, n);

	torsh_heap_leave_allocator(outer);
	torsh_heap_allocated_elsewhere(p, n, ALLOC_MALLOC, HOOK_FRAME);
	return p;
}

static void *domain_calloc(void *context, size_t n, size_t size)
{
	const struct allocator *allocator = context;
	void *outer = torsh_heap_enter_allocator(),
	     *p = allocator->calloc(allocator->context, n, size);

	torsh_heap_leave_allocator(outer);
	/* If the product overflows the allocator has failed. */
	torsh_heap_allocated_elsewhere(p, n * size, ALLOC_CALLOC, HOOK_FRAME);
	return p;
}

static void *domain_realloc(void *context, void *block, size_t n)
{
	const struct allocator *allocator = context;
	void *outer, *p;

	torsh_heap_resizing(block);
	outer = torsh_heap_enter_allocator();
	p = allocator->realloc(allocator->context, block, n);
	torsh_heap_leave_allocator(outer);
	if (p)
		torsh_heap_allocated_elsewhere(p, n, ALLOC_REALLOC, HOOK_FRAME);
	else
		torsh_heap_not_resized(block);
	return p;
}

static void domain_free(void *context, void *block)
{
	const struct allocator *allocator = context;
	void *outer;

	torsh_heap_freeing(block);
	outer = torsh_heap_enter_allocator();
	allocator->free(allocator->context, block);
	torsh_heap_leave_allocator(outer);
}

int torsh_cpython_memory_watch(const struct link_map *map)
{
	void (*get)(int, struct allocator *) = NULL;
	void (*set)(int, struct allocator *) = NULL;
	int (*is_initialized)(void) = NULL;

	*(void **)&get = torsh_elf_symbol(map, "PyMem_GetAllocator", NULL);
	*(void **)&set = torsh_elf_symbol(map, "PyMem_SetAllocator", NULL);
	*(void **)&is_initialized = torsh_elf_symbol(map, "Py_IsInitialized", NULL);
	if (!get || !set || !is_initialized)
		return -ENOENT;
	if (is_initialized())
		return -EBUSY;
	for (int domain = DOMAIN_MEM; domain < N_DOMAINS; domain++) {
		struct allocator watching = {
			.context = &next[domain],
			.malloc = domain_malloc,
			.calloc = domain_calloc,
			.realloc = domain_realloc,
			.free = domain_free,
		};

		get(domain, &next[domain]);
		set(domain, &watching);
	}
	return 0;
}
