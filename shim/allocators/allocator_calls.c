/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Each wrapper records what its function does; the allocators do not call these functions
 * themselves.
 */
#include "shim/allocators/allocator_calls.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "shim/find_text.h"
#include "shim/hooks.h"
#include "shim/libc/next.h"

bool torsh_allocator_calls_on;

const char *const torsh_allocator_calls_leaders[N_ALLOCATORS] = {
	[ALLOCATOR_JEMALLOC] = "mallocx",
	[ALLOCATOR_TCMALLOC] = "tc_malloc",
	[ALLOCATOR_MIMALLOC] = "mi_malloc",
};

enum allocator_call {
#define CALL(allocator, result, name, parameters) CALL_##name,
#include "shim/allocators/allocator_calls.def"
	N_CALLS
};

/* The allocators' definitions; NULL if the library lacks one. */
static union {
	struct {
#define CALL(allocator, result, name, parameters) result(*name) parameters;
#include "shim/allocators/allocator_calls.def"
	} by_name;
	void *all[N_CALLS];
} next;
_Static_assert(sizeof(next.by_name) == sizeof(next.all), "one pointer for each function");

/* References bind to it unless a definition comes first. */
static bool is_first[N_CALLS];

/* By allocator: it does not serve malloc, so that it has no usable size to query. */
static bool is_elsewhere[N_ALLOCATORS];

static size_t multiply(size_t count, size_t n)
{
	size_t total;

	return __builtin_mul_overflow(count, n, &total) ? SIZE_MAX : total;
}

static void made(enum allocator allocator, void *p, size_t n, enum alloc_entry entry,
		 const void *frame)
{
	if (is_elsewhere[allocator])
		torsh_heap_allocated_elsewhere(p, n, entry, frame);
	else
		torsh_heap_allocated(p, n, entry, frame);
	if (__builtin_expect(torsh_heap_exceptions, 0))
		torsh_lsan_allocated(p);
}

/* As in realloc: size 0 frees in some allocators and returns an empty block in others. */
static void begin_resizing(void *p, size_t n)
{
	if (n)
		torsh_heap_resizing(p);
	else
		torsh_heap_freeing(p);
}

static void end_resizing(enum allocator allocator, void *p, void *resized, size_t n,
			 const void *frame)
{
	if (resized)
		made(allocator, resized, n, ALLOC_REALLOC, frame);
	else if (n)
		torsh_heap_not_resized(p);
}

#define MAKE(allocator, result, name, parameters, arguments, size, entry)            \
	static result wrap_##name parameters                                         \
	{                                                                            \
		result p = next.by_name.name arguments;                              \
                                                                                     \
		made(ALLOCATOR_##allocator, p, p ? (size) : 0, (entry), HOOK_FRAME); \
		return p;                                                            \
	}
#define MAKE_OUT(allocator, name, parameters, arguments, size)                                \
	static int wrap_##name parameters                                                     \
	{                                                                                     \
		int error = next.by_name.name arguments;                                      \
                                                                                              \
		if (!error)                                                                   \
			made(ALLOCATOR_##allocator, *out, (size), ALLOC_ALIGNED, HOOK_FRAME); \
		return error;                                                                 \
	}
#define RESIZE(allocator, name, parameters, arguments, size)                         \
	static void *wrap_##name parameters                                          \
	{                                                                            \
		void *resized;                                                       \
                                                                                     \
		begin_resizing(p, (size));                                           \
		resized = next.by_name.name arguments;                               \
		end_resizing(ALLOCATOR_##allocator, p, resized, (size), HOOK_FRAME); \
		return resized;                                                      \
	}
#define FREE(allocator, name, parameters, arguments) \
	static void wrap_##name parameters           \
	{                                            \
		torsh_heap_freeing(p);               \
		next.by_name.name arguments;         \
	}
#define OTHER(allocator, result, name, parameters)
#include "shim/allocators/allocator_calls.def"

/*
 * Resizes in place: the block keeps its owner. Returns the new size, which is less than n on
 * failure.
 */
static size_t wrap_xallocx(void *p, size_t n, size_t extra, int flags)
{
	size_t size = next.by_name.xallocx(p, n, extra, flags);

	if (size >= n) {
		torsh_heap_resizing(p);
		made(ALLOCATOR_JEMALLOC, p, size - n < extra ? size : n + extra, ALLOC_REALLOC,
		     HOOK_FRAME);
	}
	return size;
}

static void *wrap_mi_expand(void *p, size_t n)
{
	void *expanded = next.by_name.mi_expand(p, n);

	if (expanded) {
		torsh_heap_resizing(p);
		made(ALLOCATOR_MIMALLOC, expanded, n, ALLOC_REALLOC, HOOK_FRAME);
	}
	return expanded;
}

/* On failure the block is freed. */
static void *wrap_mi_reallocf(void *p, size_t n)
{
	void *resized;

	begin_resizing(p, n);
	resized = next.by_name.mi_reallocf(p, n);
	end_resizing(ALLOCATOR_MIMALLOC, p, resized, n, HOOK_FRAME);
	if (!resized && n)
		torsh_heap_freeing(p);
	return resized;
}

static void *wrap_mi_heap_reallocf(void *heap, void *p, size_t n)
{
	void *resized;

	begin_resizing(p, n);
	resized = next.by_name.mi_heap_reallocf(heap, p, n);
	end_resizing(ALLOCATOR_MIMALLOC, p, resized, n, HOOK_FRAME);
	if (!resized && n)
		torsh_heap_freeing(p);
	return resized;
}

/* Fails for an invalid place. */
static int wrap_mi_reallocarr(void **place, size_t c, size_t n)
{
	void *p = place ? *place : NULL;
	int error;

	begin_resizing(p, multiply(c, n));
	error = next.by_name.mi_reallocarr(place, c, n);
	end_resizing(ALLOCATOR_MIMALLOC, p, error ? NULL : *place, multiply(c, n), HOOK_FRAME);
	return error;
}

/* mimalloc's mi_block_visit_fun; called once with block NULL for each area. */
static bool free_visited(const void *heap, const void *area, void *block, size_t block_size,
			 void *unused)
{
	(void)heap;
	(void)area;
	(void)block_size;
	(void)unused;
	torsh_heap_freeing(block);
	return true;
}

static bool (*visit_blocks)(const void *heap, bool all,
			    bool (*visit)(const void *, const void *, void *, size_t, void *),
			    void *argument);
static void *(*get_backing)(void);

/* Frees every block in the heap, except for a thread's first heap, which stays. */
static void wrap_mi_heap_destroy(void *heap)
{
	if (visit_blocks && get_backing && heap && heap != get_backing())
		visit_blocks(heap, true, free_visited, NULL);
	next.by_name.mi_heap_destroy(heap);
}

static const struct {
	const char *name;
	enum allocator allocator;
	void *wrapper;
} calls[N_CALLS] = {
#define CALL(allocator, result, name, parameters) \
	{#name, ALLOCATOR_##allocator, (void *)wrap_##name},
#include "shim/allocators/allocator_calls.def"
};

int torsh_allocator_calls_find(const char *name)
{
	for (int i = 0; i < N_CALLS; i++)
		if (next.all[i] && !strcmp(name, calls[i].name))
			return i;
	return -1;
}

void *torsh_allocator_calls_instead(int i, void *found)
{
	return found == next.all[i] ? calls[i].wrapper : found;
}

bool torsh_allocator_calls_names(const char *path)
{
	return torsh_find_text(path, "/libjemalloc.so") || torsh_find_text(path, "/libtcmalloc") ||
	       torsh_find_text(path, "/libmimalloc") || !strncmp(path, "libjemalloc.so", 14) ||
	       !strncmp(path, "libtcmalloc", 11) || !strncmp(path, "libmimalloc", 11);
}

void *torsh_allocator_calls_bound(int i)
{
	return is_first[i] ? next.all[i] : NULL;
}

/* Find the functions of an allocator with which the program was started. */
static void find_calls(enum allocator allocator)
{
	bool is_mallocs;

	if (!torsh_next_at_start(torsh_allocator_calls_leaders[allocator], NULL, &is_mallocs))
		return;
	is_elsewhere[allocator] = !is_mallocs;
	for (int i = 0; i < N_CALLS; i++) {
		if (calls[i].allocator != allocator)
			continue;
		next.all[i] = torsh_next_at_start(calls[i].name, NULL, &is_mallocs);
		is_first[i] = next.all[i] && !torsh_next_is_defined_before(calls[i].name);
	}
	torsh_allocator_calls_on = true;
}

void torsh_allocator_calls_start(void)
{
	bool unused;

	for (int i = 0; i < N_ALLOCATORS; i++)
		find_calls((enum allocator)i);
	if (!torsh_allocator_calls_on)
		return;
	*(void **)&visit_blocks = torsh_next_at_start("mi_heap_visit_blocks", NULL, &unused);
	*(void **)&get_backing = torsh_next_at_start("mi_heap_get_backing", NULL, &unused);
}
