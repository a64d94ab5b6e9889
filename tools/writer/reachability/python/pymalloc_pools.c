/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/reachability/python/pymalloc_pools.h"

#include <string.h>

#define HEADER_BYTES 48u
#define N_SIZES 32u /* multiples of 16 up to 512 */

/* struct pool_header of obmalloc.c. */
struct pool_header {
	uint32_t n_used, unused;
	uint64_t free; /* address of the first free block; 0: none but those never used */
	uint64_t next, previous;
	uint32_t arena;
	uint32_t size_class; /* blocks have 16 bytes more for each */
	uint32_t next_offset; /* of the first block that was never used */
	uint32_t last_offset; /* of the last block */
};

_Static_assert(sizeof(struct pool_header) == HEADER_BYTES, "as in obmalloc.c");

/* Since 3.10 pools have 16 KiB, before 4 KiB. Returns 0 if the header is of neither. */
static uint32_t pool_bytes(const struct pool_header *header, uint64_t address)
{
	uint32_t of_pool = header->last_offset + (header->size_class + 1) * 16;

	return (of_pool == 4096 || of_pool == POOL_BYTES_MAX) && address % of_pool == 0 ? of_pool
											: 0;
}

/* Go through the list of free blocks. Returns false if it leaves the pool or has a loop. */
static bool read_free(struct pymalloc_pool *pool, const struct pool_header *header,
		      const uint64_t *words, size_t n, uint32_t *n_free)
{
	uint64_t at = header->free;

	for (*n_free = 0; at; ++*n_free) {
		uint64_t offset = at - pool->address - pool->first;
		uint32_t block = (uint32_t)(offset / pool->block_bytes);

		if (offset % pool->block_bytes || offset / pool->block_bytes >= pool->n_blocks ||
		    !torsh_pymalloc_is_used(pool, block))
			return false;
		pool->is_free[block / 64] |= UINT64_C(1) << block % 64;
		offset = (at - pool->address) / sizeof(*words);
		at = offset < n ? words[offset] : 0;
	}
	return true;
}

static bool is_header(const struct pool_header *header, uint64_t address)
{
	uint32_t block_bytes = (header->size_class + 1) * 16;

	/* The first offset beyond the last block's is that block's end. */
	return header->size_class < N_SIZES && pool_bytes(header, address) &&
	       header->next_offset >= HEADER_BYTES + block_bytes &&
	       header->next_offset <= pool_bytes(header, address) &&
	       (header->next_offset - HEADER_BYTES) % block_bytes == 0;
}

bool torsh_pymalloc_is_begin(uint64_t address, const uint64_t *words, size_t n)
{
	struct pool_header header;

	if (n * sizeof(*words) < HEADER_BYTES)
		return false;
	memcpy(&header, words, sizeof(header));
	return is_header(&header, address);
}

bool torsh_pymalloc_pool_read(struct pymalloc_pool *pool, uint64_t address, const uint64_t *words,
			      size_t n)
{
	struct pool_header header;
	uint32_t n_free;

	if (n * sizeof(*words) < HEADER_BYTES)
		return false;
	memcpy(&header, words, sizeof(header));
	if (!is_header(&header, address))
		return false;
	*pool = (struct pymalloc_pool){
		.address = address,
		.bytes = pool_bytes(&header, address),
		.block_bytes = (header.size_class + 1) * 16,
		.first = HEADER_BYTES,
	};
	pool->n_blocks = (header.next_offset - HEADER_BYTES) / pool->block_bytes;
	return read_free(pool, &header, words, n, &n_free) &&
	       header.n_used == pool->n_blocks - n_free;
}
