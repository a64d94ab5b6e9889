/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/jemalloc_maps.h"

#include <unistd.h>

#define BASE_BYTES (UINT64_C(2) << 20) /* memory for tables begins and ends at multiples of it */
/* Tables of extents lie at multiples of it; the address and the size are their second and third. */
#define EXTENT_WORDS 16u
#define HEADER_BYTES (2 * EXTENT_WORDS * sizeof(uint64_t)) /* base_block_t, up to the first table */
#define ADDRESS_WORD 1u
#define SIZE_WORD 2u

struct jemalloc_search {
	struct heap_ranges *ranges;
	const struct memory_areas *areas;
	const struct memory_reader *reader;
};

static bool is_candidate(const struct memory_area *area)
{
	return area->is_readable && area->is_writable && !area->is_shared && !area->is_file &&
	       !area->is_agents && !area->is_brk_heap && !area->is_stack && area->has_own_pages;
}

static bool is_within(const struct memory_area *area, uint64_t at, uint64_t n_bytes)
{
	return at >= area->begin && at < area->end && n_bytes <= area->end - at;
}

bool torsh_jemalloc_is_base(const struct memory_area *area, uint64_t at,
			    const uint64_t words[N_JEMALLOC_WORDS])
{
	uint64_t n_bytes = words[JEMALLOC_BLOCK_BYTES], free_at = words[JEMALLOC_FREE_AT];

	return n_bytes && n_bytes % BASE_BYTES == 0 && is_within(area, at, n_bytes) &&
	       words[JEMALLOC_NEXT_BLOCK] % BASE_BYTES == 0 && free_at > at &&
	       free_at - at <= n_bytes && words[JEMALLOC_FREE_BYTES] == at + n_bytes - free_at;
}

/* Whether words can be those of an extent: whole pages of one area. */
static bool is_extent(const struct jemalloc_search *search, const uint64_t *words)
{
	uint64_t page = search->reader->page_bytes, at = words[ADDRESS_WORD];
	uint64_t n_bytes = words[SIZE_WORD] & ~(page - 1);
	const struct memory_area *area;

	if (!words[0] || !at || at % page || !n_bytes)
		return false;
	area = torsh_memory_areas_find(search->areas, at);
	return area && is_candidate(area) && is_within(area, at, n_bytes);
}

/* Look at the tables in the part of a base that is in use. */
static void add_extents(struct jemalloc_search *search, uint64_t begin, uint64_t end)
{
	uint64_t page = search->reader->page_bytes, *words = search->reader->words;
	const size_t most = READER_WORDS * sizeof(*words);

	for (uint64_t at = begin; at < end; at += most) {
		ssize_t got = pread(search->reader->memory_fd, words, most, (off_t)at);
		size_t n = got < 0 ? 0 : (size_t)got / sizeof(*words);

		for (size_t i = 0; i + SIZE_WORD < n && at + i * sizeof(*words) < end;
		     i += EXTENT_WORDS) {
			if (is_extent(search, words + i))
				torsh_heap_ranges_add(search->ranges, words[i + ADDRESS_WORD],
						      words[i + ADDRESS_WORD] +
							      (words[i + SIZE_WORD] & ~(page - 1)));
		}
	}
}

static void search_area(struct jemalloc_search *search, const struct memory_area *area)
{
	uint64_t at = (area->begin + BASE_BYTES - 1) & ~(BASE_BYTES - 1);
	uint64_t words[N_JEMALLOC_WORDS];

	for (; at < area->end && area->end - at >= BASE_BYTES; at += BASE_BYTES) {
		if (pread(search->reader->memory_fd, words, sizeof(words), (off_t)at) !=
			    sizeof(words) ||
		    !torsh_jemalloc_is_base(area, at, words))
			continue;
		torsh_heap_ranges_add(search->ranges, at, at + words[JEMALLOC_BLOCK_BYTES]);
		add_extents(search, at + HEADER_BYTES, words[JEMALLOC_FREE_AT]);
	}
}

void torsh_jemalloc_maps_add(struct heap_ranges *ranges, const struct memory_areas *areas,
			     const struct memory_reader *reader)
{
	struct jemalloc_search search = {.ranges = ranges, .areas = areas, .reader = reader};

	for (uint32_t i = 0; i < areas->n; i++) {
		if (is_candidate(&areas->items[i]))
			search_area(&search, &areas->items[i]);
	}
}
