/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/root_scan.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Returns the area's part in use: from the lowest stack pointer on, if it is a stack. */
static struct stack_rest part_in_use(const struct scan *scan, uint32_t number)
{
	const struct memory_area *area = &scan->areas->items[number];
	struct stack_rest rest;
	uint64_t begin = area->end;

	for (uint32_t i = 0; i < scan->threads->n; i++) {
		uint64_t at = scan->threads->items[i].stack_pointer - RED_ZONE_BYTES;

		if (at >= area->begin && at < begin)
			begin = at;
	}
	if (begin < area->end)
		return (struct stack_rest){begin, area->end};
	if (torsh_stack_of_ended_thread(scan->areas, number, scan->threads, scan->reader, &rest))
		return rest;
	return (struct stack_rest){area->begin, area->end};
}

/* Memory that processes share has no addresses of one of them. */
static bool is_root(const struct memory_area *area)
{
	return area->is_readable && !area->is_shared && !area->is_agents && !area->is_device &&
	       area->has_own_pages;
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
	const struct stack_rest used = part_in_use(scan, number);
	uint64_t at = used.begin;
	uint32_t i = torsh_heap_ranges_from(scan->heap, at);
	int result = 0;

	while (!result && at < used.end) {
		const struct heap_range *heap =
			i < scan->heap->n && scan->heap->items[i].begin < used.end
				? &scan->heap->items[i++]
				: NULL;
		uint64_t end = heap ? heap->begin : used.end;

		if (at < end)
			result = torsh_memory_read(scan->reader, at, end, area->is_file,
						   is_glibc(area) ? take_data : take_root, scan);
		at = heap ? heap->end : used.end;
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

static void note_begin(struct scan *scan, uint32_t block, uint64_t *words, size_t n)
{
	torsh_object_begins_note(scan->begins, block,
				 torsh_block_size(&scan->graph->index->blocks[block]), words, n);
	torsh_python_heap_note(scan->python, block, words, n);
}

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

		bool is_begin = from >= address;
		uint64_t *first;

		from = is_begin ? from : address;
		to = to < end ? to & ~UINT64_C(7) : end;
		if (from >= to)
			continue;
		first = words + (from - address) / sizeof(*words);
		if (is_begin)
			note_begin(scan, i, first, (to - from) / sizeof(*words));
		torsh_pointer_graph_add_words(scan->graph, i, first, (to - from) / sizeof(*words));
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

/* Pointers to places where a later base class may begin. */
struct places {
	const struct doubtful_pointer *pointers[N_AT_ONCE];
	size_t n;
};

/* Read what is at the places; those that can't be read are none. */
static void settle_places(struct scan *scan, struct places *places)
{
	uint64_t words[N_AT_ONCE] = {0};

	for (size_t i = 0; i < places->n; i++) {
		uint64_t address = places->pointers[i]->address;

		if (pread(scan->reader->memory_fd, &words[i], sizeof(words[i]), (off_t)address) ==
			    sizeof(words[i]) &&
		    words[i] && torsh_object_begins_is_table(scan->begins, words[i]))
			torsh_pointer_graph_settle(scan->graph, places->pointers[i]);
	}
	places->n = 0;
	scan->go_on(scan->context);
}

static void settle_doubtful(struct scan *scan)
{
	struct pointer_graph *graph = scan->graph;
	struct places places = {.n = 0};

	for (size_t i = 0; i < graph->n_doubtful; i++) {
		const struct doubtful_pointer *pointer = &graph->doubtful[i];
		uint32_t block = graph->pointers[pointer->number].block;
		uint64_t offset = pointer->address - graph->index->blocks[block].address;

		if (torsh_object_begins_at(scan->begins, block, offset))
			torsh_pointer_graph_settle(graph, pointer);
		else if (torsh_object_begins_with_table(scan->begins, block))
			places.pointers[places.n++] = pointer;
		if (places.n == N_AT_ONCE)
			settle_places(scan, &places);
	}
	settle_places(scan, &places);
}

int torsh_scan(struct scan *scan)
{
	struct object_begins begins;
	int result;

	torsh_object_begins_create(&begins, scan->areas, scan->graph->index->n);
	scan->begins = &begins;
	result = scan_roots(scan);
	if (!result)
		result = scan_blocks(scan);
	if (!result)
		settle_doubtful(scan);
	torsh_object_begins_destroy(&begins);
	scan->begins = NULL;
	return result;
}
