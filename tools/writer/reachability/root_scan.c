/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/root_scan.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "tools/base/memory.h"
#include "tools/writer/reachability/image/glibc_state.h"
#include "tools/writer/reachability/image/thread_stacks.h"

#define RED_ZONE_BYTES 128u /* below the stack pointer, where leaf functions keep values */

/* ---- roots ----------------------------------------------------------------------------------- */

static void take_root(void *context, uint64_t address, uint64_t *words, size_t n)
{
	struct scan *scan = context;

	torsh_pointer_graph_add_root(scan->graph, address, words, n);
	scan->go_on(scan->context);
}

/* Of the C library, which has pointers to free memory, too. */
static void take_data(void *context, uint64_t address, uint64_t *words, size_t n)
{
	torsh_glibc_state_blank(address, words, n);
	take_root(context, address, words, n);
}

/* Where the area's part in use begins: at the lowest stack pointer, if it is a stack. */
static uint64_t begin_of(const struct scan *scan, uint32_t number)
{
	const struct memory_area *area = &scan->areas->items[number];
	uint64_t begin = area->end, kept;

	for (uint32_t i = 0; i < scan->threads->n; i++) {
		uint64_t at = scan->threads->items[i].stack_pointer - RED_ZONE_BYTES;

		if (at >= area->begin && at < begin)
			begin = at;
	}
	if (begin < area->end)
		return begin;
	kept = torsh_stack_of_ended_thread(scan->areas, number, scan->threads, scan->reader);
	return kept ? kept : area->begin;
}

static bool is_root(const struct memory_area *area)
{
	return area->is_readable && !area->is_agents && !area->is_device &&
	       (!area->is_shared || area->is_writable) && (!area->is_file || !area->is_shared);
}

static bool is_glibc(const struct memory_area *area)
{
	const char *file = area->path ? strrchr(area->path, '/') : NULL;

	return file && (!strncmp(file, "/libc.so", 8) || !strncmp(file, "/libc-", 6));
}

/* The area without what is an allocator's. */
static int scan_area(struct scan *scan, uint32_t number)
{
	const struct memory_area *area = &scan->areas->items[number];
	uint64_t at = begin_of(scan, number);
	uint32_t i = torsh_heap_ranges_from(scan->heap, at);
	int result = 0;

	while (!result && at < area->end) {
		const struct heap_range *heap =
			i < scan->heap->n && scan->heap->items[i].begin < area->end
				? &scan->heap->items[i++]
				: NULL;
		uint64_t end = heap ? heap->begin : area->end;

		if (at < end)
			result = torsh_memory_read(scan->reader, at, end, area->is_file,
						   is_glibc(area) ? take_data : take_root, scan);
		at = heap ? heap->end : area->end;
	}
	return result;
}

/* A stack in a block, or in other memory of an allocator. */
static int scan_stack_in_heap(struct scan *scan, uint64_t stack_pointer)
{
	uint64_t at = stack_pointer - RED_ZONE_BYTES;
	uint32_t i = torsh_heap_ranges_from(scan->heap, at), block;

	if (i == scan->heap->n || scan->heap->items[i].begin > at)
		return 0;
	block = torsh_block_index_find(scan->graph->index, stack_pointer);
	if (block == NO_BLOCK)
		return 0;
	return torsh_memory_read(scan->reader, at,
				 scan->graph->index->blocks[block].address +
					 torsh_block_size(&scan->graph->index->blocks[block]),
				 false, take_root, scan);
}

static int scan_roots(struct scan *scan)
{
	int result = 0;

	for (uint32_t i = 0; !result && i < scan->threads->n; i++) {
		const struct stopped_thread *thread = &scan->threads->items[i];

		torsh_pointer_graph_add_root(scan->graph, 0, thread->registers,
					     thread->n_registers);
		result = scan_stack_in_heap(scan, thread->stack_pointer);
	}
	for (uint32_t i = 0; !result && i < scan->areas->n; i++) {
		if (is_root(&scan->areas->items[i]))
			result = scan_area(scan, i);
	}
	return result;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Words that are in no block are the allocator's. */
static void take_blocks(void *context, uint64_t address, uint64_t *words, size_t n)
{
	struct scan *scan = context;
	const struct block_index *index = scan->graph->index;
	uint64_t end = address + n * sizeof(*words);

	for (uint32_t i = torsh_block_index_from(index, address);
	     i < index->n && index->blocks[i].address < end; i++) {
		uint64_t from = (index->blocks[i].address + 7) & ~UINT64_C(7);
		uint64_t to = index->blocks[i].address + torsh_block_size(&index->blocks[i]);

		from = from > address ? from : address;
		to = to < end ? to & ~UINT64_C(7) : end;
		if (from < to)
			torsh_pointer_graph_add_words(scan->graph, i,
						      words + (from - address) / sizeof(*words),
						      (to - from) / sizeof(*words));
	}
	scan->go_on(scan->context);
}

static int scan_blocks(struct scan *scan)
{
	int result = 0;

	for (uint32_t i = 0; !result && i < scan->heap->n; i++)
		result = torsh_memory_read(scan->reader, scan->heap->items[i].begin,
					   scan->heap->items[i].end, false, take_blocks, scan);
	torsh_pointer_graph_end(scan->graph);
	return result;
}

/* ---- pointers to what may be a begin --------------------------------------------------------- */

#define N_AT_ONCE 512u

/* What is at a pointer, and at the begin of its block. */
struct sight {
	uint64_t at[2], begin;
};

static bool is_constant_of_module(const struct scan *scan, uint64_t address)
{
	const struct memory_area *area = torsh_memory_areas_find(scan->areas, address);

	return area && area->is_file && !area->is_writable;
}

/* A Python object behind the header that the garbage collector gives it. */
static bool is_python_object(const struct scan *scan, uint64_t offset, const struct sight *sight)
{
	return (offset == 16 || offset == 32) && sight->at[0] && sight->at[0] >> 62 == 0 &&
	       sight->at[1] && sight->at[1] % 8 == 0 &&
	       torsh_memory_areas_find(scan->areas, sight->at[1]);
}

/*
 * The cases that Valgrind knows by heuristics: C++ arrays behind their number of items, memory
 * behind its length, and a later base class, which has a table of virtual functions as the first
 * one has.
 */
static bool is_begin(const struct scan *scan, const struct indexed_block *block, uint64_t offset,
		     const struct sight *sight)
{
	uint64_t size = torsh_block_size(block);

	if (offset == 8 && sight->begin &&
	    (sight->begin == size - 8 || (size > 8 && (size - 8) % sight->begin == 0)))
		return true;
	return is_python_object(scan, offset, sight) ||
	       (is_constant_of_module(scan, sight->begin) &&
		is_constant_of_module(scan, sight->at[0]));
}

static void settle(struct scan *scan, const struct doubtful_pointer *pointers, size_t n)
{
	const struct block_index *index = scan->graph->index;
	struct sight sights[N_AT_ONCE] = {{{0}, 0}};
	struct iovec local[2 * N_AT_ONCE], remote[2 * N_AT_ONCE];

	for (size_t i = 0; i < n; i++) {
		uint32_t block = scan->graph->pointers[pointers[i].number].block;

		local[2 * i] = (struct iovec){sights[i].at, sizeof(sights[i].at)};
		remote[2 * i] = (struct iovec){(void *)(uintptr_t)pointers[i].address,
					       sizeof(sights[i].at)};
		local[2 * i + 1] = (struct iovec){&sights[i].begin, sizeof(sights[i].begin)};
		remote[2 * i + 1] = (struct iovec){(void *)(uintptr_t)index->blocks[block].address,
						   sizeof(sights[i].begin)};
	}
	process_vm_readv(scan->reader->pid, local, 2 * n, remote, 2 * n, 0);
	for (size_t i = 0; i < n; i++) {
		const struct indexed_block *block =
			&index->blocks[scan->graph->pointers[pointers[i].number].block];

		if (is_begin(scan, block, pointers[i].address - block->address, &sights[i]))
			torsh_pointer_graph_settle(scan->graph, &pointers[i]);
	}
}

int torsh_scan(struct scan *scan)
{
	struct pointer_graph *graph = scan->graph;
	int result = scan_roots(scan);

	if (!result)
		result = scan_blocks(scan);
	for (size_t i = 0; !result && i < graph->n_doubtful; i += N_AT_ONCE) {
		size_t n = graph->n_doubtful - i < N_AT_ONCE ? graph->n_doubtful - i : N_AT_ONCE;

		settle(scan, graph->doubtful + i, n);
		scan->go_on(scan->context);
	}
	return result;
}
