/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/residency/resident_blocks.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

#define CHUNK_MIN 24u /* usable bytes of glibc's smallest chunk */
#define CHUNK_STEP 16u
#define HEADER_BYTES 8u /* the size of the chunk; the word before is the former chunk's */
#define OWN_PAGES_HEADER 16u /* both words, of a chunk with pages of its own */
#define OWN_PAGES_MIN (UINT64_C(64) << 10) /* smaller ones never have them */
#define PAGE UINT64_C(4096)

void torsh_resident_blocks_create(struct resident_blocks *blocks, bool is_glibc)
{
	*blocks = (struct resident_blocks){.is_glibc = is_glibc};
	torsh_block_index_create(&blocks->index);
}

void torsh_resident_blocks_destroy(struct resident_blocks *blocks)
{
	torsh_block_index_destroy(&blocks->index);
	free(blocks->items);
	*blocks = (struct resident_blocks){0};
}

/* What glibc gives for a request, where the agent has no usable size. */
static uint64_t usable_of(uint64_t size)
{
	uint64_t chunk = (size + HEADER_BYTES + CHUNK_STEP - 1) / CHUNK_STEP * CHUNK_STEP;

	return size <= CHUNK_MIN ? CHUNK_MIN : chunk - HEADER_BYTES;
}

static bool has_own_pages(const struct resident_blocks *blocks, uint64_t address, uint64_t size)
{
	return blocks->is_glibc && size >= OWN_PAGES_MIN && address % PAGE == OWN_PAGES_HEADER;
}

void torsh_resident_blocks_add(struct resident_blocks *blocks, uint64_t address, uint64_t size,
			       uint64_t usable, uint32_t stack)
{
	uint32_t n = blocks->index.n;
	uint64_t rounding;

	if (!usable && blocks->is_glibc)
		usable = usable_of(size);
	rounding = usable > size ? usable - size : 0;
	torsh_block_index_add(&blocks->index, address, size, n);
	if (blocks->index.n == n)
		return;
	blocks->items =
		torsh_array_reserve(blocks->items, n, &blocks->capacity, sizeof(*blocks->items));
	blocks->items[n] = (struct resident_block){
		.size = size,
		.stack = stack,
		.rounding = rounding < UINT32_MAX ? (uint32_t)rounding : UINT32_MAX,
	};
}

/* Put the items in the order of the index: they are read in this order, more than once. */
static void order_items(struct resident_blocks *blocks)
{
	struct indexed_block *order = blocks->index.blocks;

	for (uint32_t i = 0; i < blocks->index.n; i++) {
		struct resident_block first = blocks->items[i];
		uint32_t at = i, from;

		/* Go round the cycle of items that take each other's places. */
		while ((from = order[at].site) != i) {
			blocks->items[at] = blocks->items[from];
			order[at].site = at;
			at = from;
		}
		blocks->items[at] = first;
		order[at].site = at;
	}
}

void torsh_resident_blocks_end(struct resident_blocks *blocks)
{
	torsh_block_index_sort(&blocks->index);
	order_items(blocks);
}

void torsh_resident_blocks_join(struct resident_blocks *blocks, const struct resident_blocks *other)
{
	for (uint32_t i = 0; i < other->index.n; i++) {
		const struct indexed_block *block = &other->index.blocks[i];
		const struct resident_block *item = &other->items[block->site];

		torsh_resident_blocks_add(blocks, block->address, item->size,
					  item->size + item->rounding, item->stack);
	}
	torsh_resident_blocks_end(blocks);
}

static uint64_t at_most(uint64_t address, uint64_t limit)
{
	return address < limit ? address : limit;
}

struct resident_chunk torsh_resident_blocks_at(const struct resident_blocks *blocks, uint32_t i)
{
	const struct indexed_block *block = &blocks->index.blocks[i];
	const struct resident_block *item = &blocks->items[block->site];
	uint64_t limit = i + 1 < blocks->index.n ? block[1].address : UINT64_MAX;
	uint64_t header = !blocks->is_glibc				      ? 0
			  : has_own_pages(blocks, block->address, item->size) ? OWN_PAGES_HEADER
									      : HEADER_BYTES;

	return (struct resident_chunk){
		.begin = block->address - header,
		.address = block->address,
		.end = at_most(block->address + item->size, limit),
		.chunk_end = at_most(block->address + item->size + item->rounding, limit),
		.size = item->size,
		.stack = item->stack,
	};
}

uint32_t torsh_resident_blocks_from(const struct resident_blocks *blocks, uint64_t address)
{
	uint32_t from = 0, to = blocks->index.n;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (torsh_resident_blocks_at(blocks, middle).chunk_end <= address)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}
