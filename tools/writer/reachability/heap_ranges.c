/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/heap_ranges.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/writer/reachability/jemalloc_maps.h"

/* sizeof(struct heap_info), where an arena's own heap goes on with its state; from 2.35 on more */
#define ARENA_STATE_MIN 0x20u
#define ARENA_STATE_MAX 0x40u

void torsh_heap_ranges_add(struct heap_ranges *ranges, uint64_t begin, uint64_t end)
{
	struct heap_range *last = ranges->n ? &ranges->items[ranges->n - 1] : NULL;

	if (last && begin >= last->begin && begin <= last->end) {
		last->end = end > last->end ? end : last->end;
		return;
	}
	ranges->items = torsh_array_reserve(ranges->items, ranges->n, &ranges->capacity,
					    sizeof(*ranges->items));
	ranges->items[ranges->n++] = (struct heap_range){begin, end};
}

static int compare_ranges(const void *a, const void *b)
{
	const struct heap_range *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

void torsh_heap_ranges_sort(struct heap_ranges *ranges)
{
	uint32_t n = ranges->n;

	if (!n)
		return;
	qsort(ranges->items, n, sizeof(*ranges->items), compare_ranges);
	ranges->n = 1;
	for (uint32_t i = 1; i < n; i++)
		torsh_heap_ranges_add(ranges, ranges->items[i].begin, ranges->items[i].end);
}

void torsh_heap_ranges_free(struct heap_ranges *ranges)
{
	free(ranges->items);
	*ranges = (struct heap_ranges){0};
}

uint32_t torsh_heap_ranges_from(const struct heap_ranges *ranges, uint64_t address)
{
	uint32_t from = 0, to = ranges->n;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (ranges->items[middle].end <= address)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* By its struct heap_info: the arena's state, the heap before this one, and the heap's size. */
bool torsh_heap_is_arena(const struct memory_reader *reader, uint64_t at)
{
	uint64_t state = torsh_memory_word(reader, at);
	uint64_t before = torsh_memory_word(reader, at + 8);
	uint64_t size = torsh_memory_word(reader, at + 16);
	uint64_t offset = state % HEAP_ARENA_BYTES;

	return offset >= ARENA_STATE_MIN && offset <= ARENA_STATE_MAX &&
	       before % HEAP_ARENA_BYTES == 0 && size && size <= HEAP_ARENA_BYTES &&
	       size % reader->page_bytes == 0;
}

struct arena_search {
	uint64_t at;
	bool is_arena;
};

/* Blocks come in order: most are in the arena of the one before. */
static bool is_in_arena(struct arena_search *last, const struct memory_areas *areas,
			const struct memory_reader *reader, uint64_t address)
{
	uint64_t at = address / HEAP_ARENA_BYTES * HEAP_ARENA_BYTES;

	if (at != last->at)
		*last = (struct arena_search){at, torsh_memory_areas_find(areas, at) &&
							  torsh_heap_is_arena(reader, at)};
	return last->is_arena;
}

void torsh_heap_ranges_find(struct heap_ranges *ranges, const struct memory_areas *areas,
			    const struct block_index *index, const struct memory_reader *reader)
{
	struct arena_search arena = {0};
	uint64_t page = reader->page_bytes;

	for (uint32_t i = 0; i < index->n; i++) {
		uint64_t at = index->blocks[i].address,
			 end = at + torsh_block_size(&index->blocks[i]);
		const struct memory_area *area;

		if (ranges->n && at >= ranges->items[ranges->n - 1].begin &&
		    end <= ranges->items[ranges->n - 1].end)
			continue;
		area = torsh_memory_areas_find(areas, at);
		if (!area)
			continue;
		if (area->is_brk_heap)
			torsh_heap_ranges_add(ranges, area->begin, area->end);
		else if (is_in_arena(&arena, areas, reader, at))
			torsh_heap_ranges_add(ranges, arena.at,
					      area->end < arena.at + HEAP_ARENA_BYTES
						      ? area->end
						      : arena.at + HEAP_ARENA_BYTES);
		else
			torsh_heap_ranges_add(ranges, at / page * page,
					      (end + page - 1) / page * page);
	}
	torsh_jemalloc_maps_add(ranges, areas, reader);
	torsh_heap_ranges_sort(ranges);
}
