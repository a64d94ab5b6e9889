/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Blocks are found by addresses as a search through all of them finds them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/writer/reachability/block_index.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define BASE UINT64_C(0x7f0000000000)

struct given {
	uint64_t address, size;
};

/* Some share megabytes with large ones, or lie within them, as pools of Python do. */
static const struct given blocks[] = {
	{BASE + 100, 24},	   {BASE + 512, 5 * MIB + 17},	    {BASE + 2 * MIB + 8, 40},
	{BASE + 5 * MIB + 600, 0}, {BASE + 8 * MIB, MIB},	    {BASE + 9 * MIB, 2 * MIB - 1},
	{BASE + 11 * MIB, 16},	   {BASE + 1000 * MIB, 3000 * MIB}, {BASE + 4000 * MIB + 5, 1},
};

#define N_BLOCKS (sizeof(blocks) / sizeof(*blocks))

/* The first block in the order of addresses that contains the address. */
static uint32_t search(const struct block_index *index, uint64_t address)
{
	for (uint32_t i = 0; i < index->n; i++) {
		const struct indexed_block *block = &index->blocks[i];

		if (address >= block->address && address - block->address < torsh_block_size(block))
			return i;
	}
	return NO_BLOCK;
}

static void expect_as_searched(const struct block_index *index, uint64_t address)
{
	uint32_t found;

	torsh_block_index_find_many(index, &address, 1, &found);
	assert_int_equal(found, search(index, address));
	assert_int_equal(torsh_block_index_find(index, address), found);
}

static void blocks_are_found_at_their_edges_and_within(void **state)
{
	static const int64_t offsets[] = {-1, 0, 1, 255, 256};
	struct block_index index;

	(void)state;
	torsh_block_index_create(&index);
	for (size_t i = N_BLOCKS; i-- > 0;)
		torsh_block_index_add(&index, blocks[i].address, blocks[i].size, (uint32_t)i);
	torsh_block_index_end(&index);
	for (size_t i = 0; i < N_BLOCKS; i++) {
		for (size_t k = 0; k < sizeof(offsets) / sizeof(*offsets); k++) {
			uint64_t offset = (uint64_t)offsets[k];

			expect_as_searched(&index, blocks[i].address + offset);
			expect_as_searched(&index, blocks[i].address + blocks[i].size + offset);
			expect_as_searched(&index, blocks[i].address + blocks[i].size / 2 + offset);
		}
	}
	for (uint64_t at = BASE; at < BASE + 13 * MIB; at += 4 * KIB + 8)
		expect_as_searched(&index, at);
	assert_int_equal(index.blocks[torsh_block_index_find(&index, BASE + 2000 * MIB)].site, 7);
	torsh_block_index_destroy(&index);
}

static void a_large_block_needs_no_memory_for_what_is_within(void **state)
{
	struct block_index index;
	uint32_t n_parts = 0;

	(void)state;
	torsh_block_index_create(&index);
	torsh_block_index_add(&index, BASE + 16, 4000 * MIB, 0);
	torsh_block_index_end(&index);
	for (uint32_t i = 0; i < index.n_used; i++) {
		for (uint32_t k = 0; k < BLOCK_INDEX_MEGABYTES; k++)
			n_parts += index.gigabytes[index.used[i]]->parts[k] != NULL;
	}
	assert_int_equal(n_parts, 1); /* of its last megabyte, which it has a part of */
	torsh_block_index_destroy(&index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_found_at_their_edges_and_within),
		cmocka_unit_test(a_large_block_needs_no_memory_for_what_is_within),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
