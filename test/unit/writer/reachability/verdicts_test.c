/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Verdicts on blocks of made-up memory, against a plain search over the same memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "tools/writer/reachability/image/glibc_state.h"
#include "tools/writer/reachability/image/memory_areas.h"
#include "tools/writer/reachability/verdicts.h"

#define BASE UINT64_C(0x7f0000001000)
#define N_BLOCKS 200u
#define BLOCK_WORDS 6u
#define SPACING 64u /* bytes from one block to the next: 48 of them are the block's */
#define N_ROOTS 10u

struct memory {
	uint64_t roots[N_ROOTS];
	uint64_t words[N_BLOCKS][BLOCK_WORDS];
};

static uint64_t address_of(uint32_t block)
{
	return BASE + (uint64_t)block * SPACING;
}

/* A pointer to a block's begin, to its inside, between blocks, or something else. */
static uint64_t any_word(uint64_t *random)
{
	uint32_t block = (uint32_t)(random_below(random, N_BLOCKS));

	switch (random_below(random, 8)) {
	case 0:
		return address_of(block);
	case 1:
		return address_of(block) + 1 + random_below(random, 47);
	case 2:
		return address_of(block) + 48 + random_below(random, 16);
	default:
		return random_next(random);
	}
}

/* Mark what the word leads to, by the definition. */
static void search(const struct memory *memory, uint64_t word, bool with_interior, uint8_t *marks,
		   uint8_t mark)
{
	uint64_t offset = word - BASE;
	uint32_t block = (uint32_t)(offset / SPACING);

	if (word < BASE || offset >= N_BLOCKS * SPACING || offset % SPACING >= 48 || marks[block] ||
	    (offset % SPACING && !with_interior))
		return;
	marks[block] = mark;
	for (uint32_t i = 0; i < BLOCK_WORDS; i++)
		search(memory, memory->words[block][i], with_interior, marks, mark);
}

static void expected_of(const struct memory *memory, uint8_t *marks)
{
	uint8_t reached[N_BLOCKS] = {0};

	for (uint32_t i = 0; i < N_ROOTS; i++)
		search(memory, memory->roots[i], false, marks, VERDICT_REACHABLE);
	for (uint32_t i = 0; i < N_ROOTS; i++)
		search(memory, memory->roots[i], true, reached, VERDICT_POSSIBLE);
	for (uint32_t i = 0; i < N_BLOCKS; i++)
		marks[i] = marks[i] ? marks[i] : reached[i];
}

static void judge(const struct memory *memory, struct verdicts *verdicts)
{
	struct block_index index;
	struct pointer_graph graph;

	torsh_block_index_create(&index);
	for (uint32_t i = N_BLOCKS; i-- > 0;)
		torsh_block_index_add(&index, address_of(i), 48, i);
	torsh_block_index_end(&index);
	torsh_pointer_graph_create(&graph, &index);
	torsh_pointer_graph_add_root(&graph, 8, memory->roots, N_ROOTS);
	for (uint32_t i = 0; i < N_BLOCKS; i++)
		torsh_pointer_graph_add_words(&graph, i, memory->words[i], BLOCK_WORDS);
	torsh_pointer_graph_end(&graph);
	torsh_verdicts_find(verdicts, &graph);
	torsh_pointer_graph_destroy(&graph);
	torsh_block_index_destroy(&index);
}

static void random_memory_is_judged_as_a_plain_search_does(void **state)
{
	uint64_t random = 7;
	uint32_t counts[N_VERDICTS] = {0};

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct memory memory;
		struct verdicts verdicts;
		uint8_t expected[N_BLOCKS] = {0};

		for (uint32_t i = 0; i < N_ROOTS; i++)
			memory.roots[i] = any_word(&random);
		for (uint32_t i = 0; i < N_BLOCKS * BLOCK_WORDS; i++)
			memory.words[i / BLOCK_WORDS][i % BLOCK_WORDS] = any_word(&random);
		expected_of(&memory, expected);
		judge(&memory, &verdicts);
		for (uint32_t i = 0; i < N_BLOCKS; i++) {
			counts[verdicts.of[i]]++;
			if (expected[i])
				assert_int_equal(verdicts.of[i], expected[i]);
			else
				assert_in_range(verdicts.of[i], VERDICT_LOST, VERDICT_INDIRECT);
		}
		torsh_verdicts_free(&verdicts);
	}
	for (int i = VERDICT_LOST; i < N_VERDICTS; i++)
		assert_true(counts[i] > 100);
}

/* Each lost block is lost by itself, or another one that is lost leads to it. */
static void what_is_lost_has_a_first_block(void **state)
{
	struct memory memory = {0};
	struct verdicts verdicts;

	(void)state;
	memory.words[3][0] = address_of(4);
	memory.words[4][2] = address_of(3); /* a cycle */
	memory.words[9][1] = address_of(9); /* itself */
	memory.words[20][0] = address_of(21);
	memory.roots[0] = address_of(30);
	memory.words[30][5] = address_of(31) + 40; /* its inside, too far for an object's begin */
	judge(&memory, &verdicts);
	assert_int_equal(verdicts.of[3], VERDICT_LOST);
	assert_int_equal(verdicts.of[4], VERDICT_INDIRECT);
	assert_int_equal(verdicts.of[9], VERDICT_LOST);
	assert_int_equal(verdicts.of[20], VERDICT_LOST);
	assert_int_equal(verdicts.of[21], VERDICT_INDIRECT);
	assert_int_equal(verdicts.of[30], VERDICT_REACHABLE);
	assert_int_equal(verdicts.of[31], VERDICT_POSSIBLE);
	torsh_verdicts_free(&verdicts);
}

static void blocks_are_found_by_every_address(void **state)
{
	uint64_t random = 11;
	struct block_index index;
	static uint64_t sizes[3000];
	uint64_t at = BASE;

	(void)state;
	torsh_block_index_create(&index);
	for (uint32_t i = 0; i < 3000; i++) {
		sizes[i] = random_below(&random, i % 50 ? 100 : 3u << 20);
		torsh_block_index_add(&index, at, sizes[i], i);
		at += (sizes[i] + 31) / 16 * 16;
	}
	torsh_block_index_end(&index);
	for (uint32_t i = 0; i < index.n; i++) {
		const struct indexed_block *block = &index.blocks[i];
		uint64_t end = block->address + (sizes[i] ? sizes[i] : 1);

		assert_int_equal(torsh_block_index_find(&index, block->address), i);
		assert_int_equal(torsh_block_index_find(&index, end - 1), i);
		assert_int_equal(torsh_block_index_find(&index, end), NO_BLOCK);
		assert_int_equal(torsh_block_index_from(&index, end - 1), i);
	}
	assert_int_equal(torsh_block_index_find(&index, BASE - 1), NO_BLOCK);
	assert_int_equal(torsh_block_index_find(&index, UINT64_MAX), NO_BLOCK);
	torsh_block_index_destroy(&index);
}

static void sizes_beyond_2_gib_are_rounded_up(void **state)
{
	struct block_index index;
	const uint64_t size = (UINT64_C(5) << 30) + 12345;

	(void)state;
	torsh_block_index_create(&index);
	torsh_block_index_add(&index, BASE, size, 0);
	torsh_block_index_end(&index);
	assert_in_range(torsh_block_size(&index.blocks[0]), size, size + 65536);
	assert_int_equal(torsh_block_index_find(&index, BASE + size - 1), 0);
	torsh_block_index_destroy(&index);
}

static void areas_are_read_as_the_kernel_prints_them(void **state)
{
	static const char *const lines[] = {
		"55d0c0000000-55d0c0001000 rw-p 00002000 08:01 77                    /tmp/a b/prog\n",
		"Rss:                   4 kB\n",
		"55d0c0001000-55d0c0003000 rw-p 00000000 00:00 0 \n",
		"55d0c1000000-55d0c1021000 rw-p 00000000 00:00 0                     [heap]\n",
		"7f0000000000-7f0000001000 rw-s 00000000 00:01 5                     /dev/nvidia0\n",
		"7f0000002000-7f0000003000 rw-p 00000000 00:00 0 \n",
		"Rss:                   4 kB\n",
		"VmFlags: rd wr mr mw me ac sd wf\n",
		"7f0000004000-7f0000005000 rw-p 00001000 08:01 9                     /x/libtorshagent.so\n",
		"7f0000005000-7f0000006000 rw-p 00000000 00:00 0 \n",
		"7f0000008000-7f0000009000 rw-p 00000000 00:00 0 \n",
		"VmFlags: rd wr mr mw me nr dd\n",
		"7f000000a000-7f000000b000 rw-p 00000000 00:00 0 \n",
		"VmFlags: rd wr mr mw me nr\n",
		"7f000000c000-7f000000d000 rw-s 00000000 00:01 5                     /memfd:a (deleted)\n",
		"7f000000d000-7f000000e000 rw-p 00000000 00:00 0 \n",
	};
	struct memory_areas areas = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		torsh_memory_areas_add_line(&areas, lines[i], "/libtorshagent.so");
	assert_int_equal(areas.n, 11);
	assert_string_equal(areas.items[0].path, "/tmp/a b/prog");
	/* Its pages are the file's, as far as these lines go; that of the device is not counted. */
	assert_false(areas.items[0].has_own_pages);
	assert_true(areas.items[4].has_own_pages && !areas.items[5].has_own_pages);
	assert_int_equal(areas.items[0].file_offset, 0x2000);
	assert_true(areas.items[0].is_file && !areas.items[1].is_file);
	assert_string_equal(areas.items[1].path, "/tmp/a b/prog");
	assert_true(areas.items[2].is_brk_heap && !areas.items[2].path);
	assert_true(areas.items[3].is_device && areas.items[3].is_shared);
	assert_true(areas.items[4].is_agents && areas.items[5].is_agents &&
		    areas.items[6].is_agents && areas.items[7].is_agents &&
		    !areas.items[8].is_agents);
	/* Only data of a module go on behind a file. */
	assert_non_null(areas.items[9].path);
	assert_null(areas.items[10].path);
	assert_ptr_equal(torsh_memory_areas_find(&areas, 0x55d0c0002fff), &areas.items[1]);
	assert_null(torsh_memory_areas_find(&areas, 0x55d0c0003000));
	torsh_memory_areas_free(&areas);
}

/* Bins of an arena point to free memory: its state is no root, and what lies beside it is one. */
static void the_state_of_the_main_arena_is_left_out(void **state)
{
	static uint64_t words[600];
	const uint64_t address = UINT64_C(0x7f1234560000);
	const size_t at = 100, bins = at + 14;

	(void)state;
	for (size_t i = 0; i < 600; i++)
		words[i] = i + 1;
	for (size_t i = 0; i < 127; i++)
		words[bins + 2 * i] = words[bins + 2 * i + 1] = address + 8 * (bins + 2 * i) - 16;
	words[bins + 20] = words[bins + 21] = UINT64_C(0x55d0c1000440); /* one that is not empty */
	words[at + 14 + 254 + 2] = address + 8 * at; /* the next arena: this one */
	torsh_glibc_state_blank(address, words, 600);
	assert_int_equal(words[at - 1], at);
	assert_int_equal(words[bins + 20], 0);
	assert_int_equal(words[at + 12], 0);
	assert_int_equal(words[at + 275], at + 276);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_memory_is_judged_as_a_plain_search_does),
		cmocka_unit_test(what_is_lost_has_a_first_block),
		cmocka_unit_test(blocks_are_found_by_every_address),
		cmocka_unit_test(sizes_beyond_2_gib_are_rounded_up),
		cmocka_unit_test(areas_are_read_as_the_kernel_prints_them),
		cmocka_unit_test(the_state_of_the_main_arena_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
