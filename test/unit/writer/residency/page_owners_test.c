/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Pages shared out among blocks and the rest, against a count of each byte by itself: random blocks
 * in random regions, with random pages in memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/writer/residency/page_owners.h"
#include "tools/writer/residency/page_runs.h"

#define PAGE 4096u
#define N_PAGES 64u
#define BASE (UINT64_C(0x7f0000000000))
#define SIZE (N_PAGES * PAGE)
#define N_BLOCKS_MAX 400u
#define N_ROUNDS 300u
#define N_STACKS 7u

/* What a byte is. */
struct byte {
	uint32_t kind, stack, name;
};

static struct byte bytes[SIZE];
static uint32_t live_class[SIZE]; /* size class of the block that the byte is in, and 1 */
static uint64_t seed;

static uint32_t any(uint32_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % n;
}

static uint32_t class_of(uint64_t size)
{
	uint32_t class = 0;

	while (size >> class)
		class ++;
	return class;
}

/* Blocks with gaps; a header of 8 bytes and the usable size as glibc has them. */
static void make_blocks(struct resident_blocks *blocks, bool is_glibc)
{
	uint64_t at = 16 + any(64) / 16 * 16;

	torsh_resident_blocks_create(blocks, is_glibc);
	for (uint32_t i = 0; i < N_BLOCKS_MAX; i++) {
		uint64_t size = any(10) ? any(300) : any(3 * PAGE), stack = any(N_STACKS);
		uint64_t usable =
			is_glibc ? (size <= 24 ? 24 : (size + 23) / 16 * 16 - 8) : size + any(20);

		if (at + usable > SIZE)
			break;
		torsh_resident_blocks_add(blocks, BASE + at, size, any(2) || !is_glibc ? usable : 0,
					  (uint32_t)stack);
		for (uint64_t k = is_glibc ? at - 8 : at; k < at + usable; k++) {
			bool is_block = k >= at && k < at + size;

			bytes[k] = (struct byte){is_block ? OWNER_HEAP : OWNER_OVERHEAD,
						 is_block ? (uint32_t)stack : 0, 0};
			live_class[k] = is_block ? class_of(size) + 1 : 0;
		}
		/* An empty block has no byte, and the next begins behind it. */
		at += (usable + 8 + 15) / 16 * 16 + (any(3) ? 0 : any(20) * 16);
		at += any(40) ? 0 : (uint64_t)any(4 * PAGE) / 16 * 16;
	}
	torsh_resident_blocks_end(blocks);
}

static uint64_t of(const struct account *account, uint32_t kind, uint32_t stack, uint32_t name)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < account->n_owners; i++) {
		const struct owner *owner = &account->owners[i].owner;

		if (owner->kind == kind && owner->stack == stack && owner->name == name)
			sum += account->owners[i].bytes;
	}
	return sum;
}

static uint64_t all(const struct account *account)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < account->n_owners; i++)
		sum += account->owners[i].bytes;
	return sum;
}

/* Random runs of pages in two regions. Returns the bytes in them; clears the others. */
static uint64_t add_runs(struct page_owners *owners, const struct region *regions, bool is_broken)
{
	uint64_t resident = 0;

	for (uint32_t page = 0; page < N_PAGES;) {
		uint32_t n = 1 + any(6), i = page >= N_PAGES / 2;
		uint32_t limit = i ? N_PAGES : N_PAGES / 2,
			 end = page + n < limit ? page + n : limit;

		if (any(3)) {
			torsh_page_owners_add(owners, &regions[i], BASE + (uint64_t)page * PAGE,
					      BASE + (uint64_t)end * PAGE, is_broken);
			resident += (uint64_t)(end - page) * PAGE;
		} else {
			memset(&bytes[page * PAGE], 0, (end - page) * PAGE * sizeof(*bytes));
			memset(&live_class[page * PAGE], 0,
			       (end - page) * PAGE * sizeof(*live_class));
		}
		page = end;
	}
	return resident;
}

static void expect_sums(const struct account *account, const struct region *regions)
{
	for (uint32_t stack = 0; stack < N_STACKS; stack++) {
		uint64_t expected = 0;

		for (uint32_t i = 0; i < SIZE; i++)
			expected += bytes[i].kind == OWNER_HEAP && bytes[i].stack == stack;
		assert_int_equal(of(account, OWNER_HEAP, stack, 0), expected);
	}
	for (uint32_t half = 0; half < 2; half++) {
		const struct owner *rest = &regions[half].rest;
		uint64_t overhead = 0, free_bytes = 0;

		for (uint32_t i = half * SIZE / 2; i < (half + 1) * SIZE / 2; i++) {
			overhead += bytes[i].kind == OWNER_OVERHEAD;
			free_bytes += bytes[i].kind == OWNER_CHANGED;
		}
		assert_int_equal(of(account, OWNER_OVERHEAD, 0, rest->name), overhead);
		assert_int_equal(of(account, rest->kind, 0, rest->name), free_bytes);
	}
}

static void expect_fragments(const struct account *account)
{
	uint64_t free_bytes = 0, live = 0, whole = 0, expected_live = 0, expected_whole = 0;

	for (uint32_t i = 0; i < account->n_fragments; i++) {
		free_bytes += account->fragments[i].free_bytes;
		live += account->fragments[i].live_bytes;
		whole += account->fragments[i].whole_bytes;
	}
	for (uint32_t page = 0; page < N_PAGES; page++) {
		uint32_t n_free = 0;

		for (uint32_t i = page * PAGE; i < (page + 1) * PAGE; i++) {
			expected_live += live_class[i] != 0;
			n_free += bytes[i].kind == OWNER_CHANGED;
		}
		expected_whole += n_free == PAGE ? PAGE : 0;
	}
	assert_int_equal(live, expected_live);
	assert_int_equal(whole, expected_whole);
	assert_int_equal(free_bytes,
			 of(account, OWNER_RETAINED, 0, 1) + of(account, OWNER_RETAINED, 0, 2));
}

static const struct region halves[] = {
	{BASE, BASE + SIZE / 2, {.kind = OWNER_RETAINED, .name = 1}, false},
	{BASE + SIZE / 2, BASE + SIZE, {.kind = OWNER_RETAINED, .name = 2}, false},
};

/* A byte that nothing else owns is the rest, here OWNER_CHANGED, if it is in memory. */
static void begin(void)
{
	for (uint32_t i = 0; i < SIZE; i++) {
		bytes[i] = (struct byte){.kind = OWNER_CHANGED};
		live_class[i] = 0;
	}
}

static void every_byte_has_the_owner_that_a_count_of_bytes_gives_it(void **state)
{
	(void)state;
	for (uint32_t round = 0; round < N_ROUNDS; round++) {
		struct account account = {0};
		struct resident_blocks blocks;
		struct page_owners owners = {
			.account = &account, .blocks = &blocks, .page_bytes = PAGE, .share = 1};
		uint64_t resident;

		seed = round + 1;
		begin();
		make_blocks(&blocks, round % 2);
		resident = add_runs(&owners, halves, false);
		assert_int_equal(all(&account), resident);
		expect_sums(&account, halves);
		expect_fragments(&account);
		torsh_account_end(&account, 3);
		assert_int_equal(all(&account), resident);
		torsh_resident_blocks_destroy(&blocks);
		torsh_account_free(&account);
	}
}

static void broken_pages_are_copied_ones_by_what_is_in_them(void **state)
{
	struct account account = {0};
	struct resident_blocks blocks;
	struct page_owners owners = {
		.account = &account, .blocks = &blocks, .page_bytes = PAGE, .share = 1};
	uint64_t resident;

	(void)state;
	seed = 99;
	begin();
	make_blocks(&blocks, true);
	resident = add_runs(&owners, halves, true);
	assert_int_equal(all(&account), resident);
	assert_int_equal(account.n_fragments, 0);
	for (uint32_t i = 0; i < account.n_owners; i++)
		assert_int_equal(account.owners[i].owner.kind, OWNER_COW);
	for (uint32_t stack = 1; stack < N_STACKS; stack++) {
		uint64_t expected = 0;

		for (uint32_t i = 0; i < SIZE; i++)
			expected += bytes[i].kind == OWNER_HEAP && bytes[i].stack == stack;
		assert_int_equal(of(&account, OWNER_COW, stack, 0), expected);
	}
	torsh_resident_blocks_destroy(&blocks);
	torsh_account_free(&account);
}

/* One block of glibc with pages of its own, and a page beside it that nothing is known of. */
static void pages_of_a_large_block_are_its_own_and_others_stay_unknown(void **state)
{
	const uint64_t size = 50 * PAGE + 100;
	const struct region unknown = {BASE, BASE + SIZE, {.kind = OWNER_UNKNOWN}, true};
	struct account account = {0};
	struct resident_blocks blocks;
	struct page_owners owners = {
		.account = &account, .blocks = &blocks, .page_bytes = PAGE, .share = 1};

	(void)state;
	torsh_resident_blocks_create(&blocks, true);
	torsh_resident_blocks_add(&blocks, BASE + 16, size, 0, 5);
	torsh_resident_blocks_end(&blocks);
	torsh_page_owners_add(&owners, &unknown, BASE, BASE + SIZE, false);
	assert_int_equal(of(&account, OWNER_HEAP, 5, 0), size);
	assert_int_equal(of(&account, OWNER_OVERHEAD, 0, 0), 51 * PAGE - size);
	assert_int_equal(of(&account, OWNER_UNKNOWN, 0, 0), 13 * PAGE);
	torsh_resident_blocks_destroy(&blocks);
	torsh_account_free(&account);
}

static void what_is_beyond_the_most_of_a_kind_is_one_owner(void **state)
{
	struct account account = {0};

	(void)state;
	for (uint32_t i = 1; i <= 10; i++)
		torsh_account_add(&account, (struct owner){.kind = OWNER_HEAP, .stack = i}, i, i);
	torsh_account_add(&account, (struct owner){.kind = OWNER_CODE, .name = 1}, 100, 50);
	torsh_account_end(&account, 3);
	assert_int_equal(account.n_owners, 5);
	assert_int_equal(of(&account, OWNER_HEAP, 10, 0), 10);
	assert_int_equal(of(&account, OWNER_HEAP, 8, 0), 8);
	assert_int_equal(of(&account, OWNER_HEAP, 0, 0), 7 + 6 + 5 + 4 + 3 + 2 + 1);
	assert_int_equal(of(&account, OWNER_CODE, 0, 1), 100);
	torsh_account_free(&account);
}

static void pages_of_zeros_are_the_first_to_go(void **state)
{
	struct page_run runs[] = {
		{BASE, BASE + 2 * PAGE, false},
		{BASE + 2 * PAGE, BASE + 6 * PAGE, true},
		{BASE + 8 * PAGE, BASE + 9 * PAGE, false},
	};
	struct page_runs list = {.items = runs, .n = 3};

	(void)state;
	assert_int_equal(torsh_page_runs_limit(&list, 0, 7 * PAGE), 7 * PAGE);
	assert_int_equal(list.n, 3);
	assert_int_equal(torsh_page_runs_limit(&list, 1, 8 * PAGE), 5 * PAGE);
	assert_int_equal(torsh_page_runs_limit(&list, 0, 4 * PAGE), 4 * PAGE);
	assert_int_equal(list.n, 3);
	assert_int_equal(list.items[1].end, BASE + 3 * PAGE);
	assert_int_equal(torsh_page_runs_limit(&list, 0, 2 * PAGE), 2 * PAGE);
	assert_int_equal(list.n, 1);
	assert_int_equal(torsh_page_runs_from(&list, BASE + 2 * PAGE), 1);
	assert_int_equal(torsh_page_runs_from(&list, BASE + 2 * PAGE - 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_has_the_owner_that_a_count_of_bytes_gives_it),
		cmocka_unit_test(broken_pages_are_copied_ones_by_what_is_in_them),
		cmocka_unit_test(pages_of_a_large_block_are_its_own_and_others_stay_unknown),
		cmocka_unit_test(what_is_beyond_the_most_of_a_kind_is_one_owner),
		cmocka_unit_test(pages_of_zeros_are_the_first_to_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
