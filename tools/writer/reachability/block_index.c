/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/block_index.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

#define ADDRESS_BITS 47
#define GIGABYTE_BITS 30
#define PAGE_BITS 12
#define N_GIGABYTES (1u << (ADDRESS_BITS - GIGABYTE_BITS))
#define N_PAGES (1u << (GIGABYTE_BITS - PAGE_BITS))

void torsh_block_index_create(struct block_index *index)
{
	*index = (struct block_index){.begin = UINT64_MAX};
}

void torsh_block_index_destroy(struct block_index *index)
{
	for (uint32_t i = 0; index->gigabytes && i < N_GIGABYTES; i++)
		free(index->gigabytes[i]);
	free(index->gigabytes);
	free(index->blocks);
	*index = (struct block_index){.begin = UINT64_MAX};
}

void torsh_block_index_add(struct block_index *index, uint64_t address, uint64_t size,
			   uint32_t site)
{
	uint64_t units = (size + UINT16_MAX) >> 16;

	if (index->n == BLOCKS_MAX || address >> ADDRESS_BITS)
		return;
	index->blocks = torsh_array_reserve(index->blocks, index->n, &index->capacity,
					    sizeof(*index->blocks));
	index->blocks[index->n++] = (struct indexed_block){
		.address = address,
		.size = size <= INT32_MAX
				? (uint32_t)size + !size
				: (uint32_t)(units < INT32_MAX ? units : INT32_MAX) | 1u << 31,
		.site = site,
	};
}

static uint64_t end_of(const struct indexed_block *block)
{
	return block->address + torsh_block_size(block);
}

static int compare_blocks(const void *a, const void *b)
{
	const struct indexed_block *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

static uint32_t *pages_of(struct block_index *index, uint64_t page)
{
	uint32_t **pages = &index->gigabytes[page >> (GIGABYTE_BITS - PAGE_BITS)];

	if (!*pages) {
		*pages = torsh_memory_new(N_PAGES, sizeof(**pages));
		for (uint32_t i = 0; i < N_PAGES; i++)
			(*pages)[i] = NO_BLOCK;
	}
	return *pages;
}

/* Enter the block for the pages that no block before it covers. */
static void enter(struct block_index *index, uint32_t i)
{
	uint64_t first = index->blocks[i].address >> PAGE_BITS;
	uint64_t last = (end_of(&index->blocks[i]) - 1) >> PAGE_BITS;

	for (uint64_t page = first; page <= last && page >> (ADDRESS_BITS - PAGE_BITS) == 0;
	     page++) {
		uint32_t *entry = &pages_of(index, page)[page % N_PAGES];

		*entry = i < *entry ? i : *entry;
	}
}

void torsh_block_index_end(struct block_index *index)
{
	qsort(index->blocks, index->n, sizeof(*index->blocks), compare_blocks);
	index->gigabytes = torsh_memory_new(N_GIGABYTES, sizeof(*index->gigabytes));
	for (uint32_t i = 0; i < index->n; i++)
		enter(index, i);
	if (!index->n)
		return;
	index->begin = index->blocks[0].address;
	for (uint32_t i = 0; i < index->n; i++)
		index->end = end_of(&index->blocks[i]) > index->end ? end_of(&index->blocks[i])
								    : index->end;
}

uint32_t torsh_block_index_find(const struct block_index *index, uint64_t address)
{
	const uint32_t *pages;
	uint32_t i;

	if (address < index->begin || address >= index->end)
		return NO_BLOCK;
	pages = index->gigabytes[address >> GIGABYTE_BITS];
	i = pages ? pages[address >> PAGE_BITS & (N_PAGES - 1)] : NO_BLOCK;
	for (; i < index->n && index->blocks[i].address <= address; i++) {
		if (address < end_of(&index->blocks[i]))
			return i;
	}
	return NO_BLOCK;
}

uint32_t torsh_block_index_from(const struct block_index *index, uint64_t address)
{
	uint32_t from = 0, to = index->n;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (end_of(&index->blocks[middle]) <= address)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}
