/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The table of live blocks equals a plain array after any additions and removals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "test/unit/fixtures/sanitized.h"
#include "tools/base/containers/live_table.h"

#define N_PLACES 1200000u /* enough that pages grow and split */

struct model {
	struct live_block *blocks; /* by place; address 0: none */
	uint64_t n_live;
};

static struct model new_model(void)
{
	return (struct model){.blocks = calloc(N_PLACES, sizeof(struct live_block))};
}

static uint64_t address_of(uint32_t place)
{
	/*
	 * Four heaps: one of addresses that are no multiples of 16, and one of addresses that no
	 * slot can hold in every place, for they are odd or too large.
	 */
	static const uint64_t bases[] = {0x555500000000, 0x7f0000000000, 0x7fff00000008,
					 UINT64_C(1) << 60};
	uint32_t of_place = place % 64 == 63 ? 3 : place % 3;

	return bases[of_place] + (uint64_t)place * 48 + (place % 256 == 191);
}

/* Of any size, time and site: some fit in a slot, some don't. */
static struct live_block random_block(uint32_t place, uint64_t *random)
{
	struct live_block block = {.address = address_of(place),
				   .size = random_below(random, 3000),
				   .stamp = random_next(random) >> 14,
				   .site = place};

	switch (random_below(random, 16)) {
	case 0:
		block.size = random_wide(random) & LIVE_SIZE_MAX;
		block.usable = block.size + random_wide(random) % (UINT64_C(1) << 60);
		break;
	case 1:
		block.stamp = random_wide(random) & LIVE_STAMP_MAX;
		break;
	case 2:
		block.usable = block.size;
		break;
	case 3:
		block.usable = 0;
		break;
	case 4:
		block.usable = block.size + random_below(random, 4096);
		break;
	case 5:
		block.owner = (uint32_t)random_below(random, 3);
		break;
	case 6:
		block.site = place + (3u << 24);
		break;
	default:
		block.usable = (block.size + 23) / 16 * 16;
		break;
	}
	return block;
}

static uint32_t place_of(const struct live_block *block)
{
	return block->site & ((1u << 24) - 1);
}

static void assert_same_block(const struct live_block *a, const struct live_block *b)
{
	assert_int_equal(a->address, b->address);
	assert_int_equal(a->size, b->size);
	assert_int_equal(a->usable, b->usable);
	assert_int_equal(a->stamp, b->stamp);
	assert_int_equal(a->site, b->site);
	assert_int_equal(a->owner, b->owner);
}

static void change_one(struct live_table *table, struct model *model, uint32_t place,
		       uint64_t *random)
{
	struct live_block *expected = &model->blocks[place], block, before;
	uint64_t address = address_of(place);
	bool is_live = expected->address != 0;

	assert_int_equal(torsh_live_find(table, address, &block), is_live);
	if (is_live)
		assert_same_block(&block, expected);
	if (is_live && random_below(random, 4)) {
		assert_true(torsh_live_take(table, address, &block));
		assert_same_block(&block, expected);
		assert_false(torsh_live_take(table, address, &block));
		expected->address = 0;
		model->n_live--;
	} else {
		block = random_block(place, random);
		assert_int_equal(torsh_live_put(table, &block, &before), is_live);
		if (is_live)
			assert_same_block(&before, expected);
		*expected = block;
		model->n_live += !is_live;
	}
	assert_int_equal(table->n_blocks, model->n_live);
}

static void assert_same_blocks(const struct live_table *table, const struct model *model)
{
	uint8_t *seen = calloc(N_PLACES, 1);
	struct live_block block;
	uint64_t at = 0, n = 0;

	while (torsh_live_next(table, &at, &block)) {
		uint32_t place = place_of(&block);

		assert_int_equal(seen[place], 0);
		assert_same_block(&block, &model->blocks[place]);
		seen[place] = 1;
		n++;
	}
	assert_false(torsh_live_next(table, &at, &block));
	assert_int_equal(n, model->n_live);
	free(seen);
}

static void a_table_is_like_an_array(void **state)
{
	struct model model = new_model();
	struct live_table table;
	uint64_t random = 1;

	(void)state;
	torsh_live_create(&table);
	for (uint32_t round = 0; round < UNLESS_SANITIZED(6, 2); round++) {
		/* Grows in one round, shrinks in the next: places that are live go first. */
		for (uint32_t i = 0; i < N_PLACES; i++) {
			uint32_t place = (uint32_t)random_below(&random, N_PLACES);

			if ((model.blocks[place].address != 0) == (round & 1) ||
			    random_below(&random, 4) == 0)
				change_one(&table, &model, place, &random);
		}
		assert_same_blocks(&table, &model);
	}
	torsh_live_destroy(&table);
	free(model.blocks);
}

static bool is_of_others(void *context, const struct live_block *block)
{
	struct model *model = context;
	uint32_t place = place_of(block);

	assert_same_block(block, &model->blocks[place]);
	if (place % 9 == 8)
		return false;
	model->blocks[place].address = 0;
	model->n_live--;
	return true;
}

/* Most changes are of the slot that the one before changed. Of all kinds of addresses. */
static void few_addresses_are_like_an_array(void **state)
{
	struct model model = new_model();
	struct live_table table;
	uint64_t random = 7;
	uint32_t place = 0;

	(void)state;
	torsh_live_create(&table);
	for (uint32_t i = 0; i < 100000; i++) {
		if (random_below(&random, 3) == 0)
			place = 191 - 16 * (uint32_t)random_below(&random, 12);
		change_one(&table, &model, place, &random);
		if (i % 1000 == 0)
			assert_same_blocks(&table, &model);
		if (i % 10000 == 0)
			torsh_live_sift(&table, is_of_others, &model);
	}
	torsh_live_destroy(&table);
	free(model.blocks);
}

/* Near the hash: slots hold multiples of 8 below 1 << 48, which are all there are. */
static uint64_t narrow_address_near(uint64_t hash, uint64_t *random)
{
	uint64_t address;

	do {
		address = random_next(random) >> 16 & ~UINT64_C(7);
	} while (!address || (address * UINT64_C(0x9e3779b97f4a7c15) ^ hash) >> 59);
	return address;
}

#define N_COLLIDING 190u /* fewer than make the first page grow */

/*
 * All belong into one bucket of the first page, which has 32: add them all, look for them, remove
 * them in any order. Some pairs differ only in the tag, or only in the key.
 */
static void crowd_one_bucket(struct live_table *table, uint32_t bucket, uint64_t *random)
{
	struct live_block block = {0}, before;
	uint64_t order[N_COLLIDING];

	for (uint32_t i = 0; i < N_COLLIDING; i++) {
		order[i] = narrow_address_near((uint64_t)bucket << 59, random);
		block = (struct live_block){.address = order[i], .size = i, .usable = i};
		assert_false(torsh_live_put(table, &block, &before));
	}
	for (uint32_t i = 0; i < N_COLLIDING; i++) {
		assert_true(torsh_live_find(table, order[i], &block));
		assert_int_equal(block.size, i);
		assert_false(torsh_live_find(table, order[i] ^ 16, &block));
		assert_false(torsh_live_find(table, order[i] ^ 8, &block));
		assert_false(torsh_live_find(table, order[i] ^ 2048, &block));
	}
	for (uint32_t n = N_COLLIDING; n > 0; n--) {
		uint32_t chosen = (uint32_t)random_below(random, n);
		uint64_t address = order[chosen];

		assert_true(torsh_live_take(table, address, &block));
		assert_false(torsh_live_find(table, address, &block));
		order[chosen] = order[n - 1];
		for (uint32_t i = 0; i + 1 < n; i += 37)
			assert_true(torsh_live_find(table, order[i], &block));
	}
	assert_int_equal(table->n_blocks, 0);
}

static void addresses_that_collide_are_kept_apart(void **state)
{
	struct live_table table;
	struct live_block block;
	uint64_t random = 2, at = 0;

	(void)state;
	torsh_live_create(&table);
	for (uint32_t round = 0; round < 8; round++) {
		for (uint32_t bucket = 0; bucket < 32; bucket++)
			crowd_one_bucket(&table, bucket, &random);
	}
	assert_false(torsh_live_next(&table, &at, &block));
	/* So many blocks passed every bucket that each keeps its mark of blocks further on. */
	assert_false(torsh_live_find(&table, 16, &block));
	torsh_live_destroy(&table);
}

/* Addresses in one bucket that differ in one bit have neighbouring tags and equal keys. */
static void neighbours_are_kept_apart(void **state)
{
	struct live_block block, before;
	struct live_table table;

	(void)state;
	torsh_live_create(&table);
	for (uint64_t bit = 8; bit < UINT64_C(1) << 48; bit <<= 1) {
		block = (struct live_block){.address = 0x7f1234567000 ^ bit, .size = bit & 0xffff};
		assert_false(torsh_live_put(&table, &block, &before));
	}
	assert_false(torsh_live_find(&table, 0x7f1234567000, &block));
	for (uint64_t bit = 8; bit < UINT64_C(1) << 48; bit <<= 1) {
		assert_true(torsh_live_take(&table, 0x7f1234567000 ^ bit, &block));
		assert_int_equal(block.size, bit & 0xffff);
		assert_false(torsh_live_find(&table, 0x7f1234567000 ^ bit, &block));
	}
	torsh_live_destroy(&table);
}

static void a_block_that_is_there_is_replaced(void **state)
{
	struct live_block block = {.address = 0x1000, .size = 77, .usable = 88}, before;
	struct live_table table;

	(void)state;
	torsh_live_create(&table);
	assert_false(torsh_live_put(&table, &block, &before));
	/* Wide, then narrow again. */
	for (uint64_t size = LIVE_SIZE_MAX, old = 77; old != 5; old = size, size = 5) {
		block.size = size;
		assert_true(torsh_live_put(&table, &block, &before));
		assert_int_equal(before.size, old);
		assert_int_equal(before.usable, 88);
		assert_true(torsh_live_find(&table, 0x1000, &before));
		assert_same_block(&before, &block);
	}
	assert_int_equal(table.n_blocks, 1);
	torsh_live_destroy(&table);
}

static void what_is_sifted_out_is_gone_with_its_memory(void **state)
{
	struct model model = new_model();
	struct live_table table;
	uint64_t random = 5, before;

	(void)state;
	torsh_live_create(&table);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < N_PLACES; i++) {
			if (!model.blocks[i].address)
				change_one(&table, &model, i, &random);
		}
		before = torsh_live_bytes(&table);
		torsh_live_sift(&table, is_of_others, &model);
		assert_same_blocks(&table, &model);
		assert_true(torsh_live_bytes(&table) < before / 4);
		for (uint32_t i = 0; i < N_PLACES; i++)
			change_one(&table, &model, (uint32_t)random_below(&random, N_PLACES),
				   &random);
		assert_same_blocks(&table, &model);
	}
	torsh_live_destroy(&table);
	free(model.blocks);
}

#define N_FIRST_WEIGHED 1000u
#define N_WEIGHED 3200000u

/* Whatever their number is. */
static void a_block_takes_at_most_24_bytes(void **state)
{
	struct live_block block = {.size = 100, .usable = 104}, before;
	struct live_table table;

	(void)state;
	torsh_live_create(&table);
	for (uint32_t i = 1; i <= N_WEIGHED; i++) {
		block.address = 0x7f0000000000 + (uint64_t)i * 48;
		torsh_live_put(&table, &block, &before);
		if (i >= N_FIRST_WEIGHED && (i < 10000 || i % 1000 == 0))
			assert_true(torsh_live_bytes(&table) <= (uint64_t)24 * i);
	}
	for (uint32_t i = 1; i <= N_WEIGHED; i++)
		assert_true(torsh_live_find(&table, 0x7f0000000000 + (uint64_t)i * 48, &before));
	torsh_live_destroy(&table);
}

static void usable_sizes_are_kept(void **state)
{
	static const struct {
		uint64_t size, usable;
	} sizes[] = {
		{0, 0},
		{0, 24},
		{10, 10},
		{10, 16},
		{10, 24},
		{100, 0},
		{100, 101},
		{100, 104 + 252 * 8},
		{100, 104 + 253 * 8},
		{100, 104 + 254 * 8},
		{100, 104 + 255 * 8},
		{100, 104 + 256 * 8},
		{0xffff, 0xffff},
		{0xffff, 0x10000},
		{0x10000, 0x10000},
		{UINT64_C(17) << 30, UINT64_C(22) << 30},
		{4097, UINT64_C(1) << 41},
		{1, (UINT64_C(1) << 41) + 16},
		{LIVE_SIZE_MAX, LIVE_SIZE_MAX},
	};
	struct live_block block = {.address = 16}, found;
	struct live_table table;

	(void)state;
	torsh_live_create(&table);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		block.size = sizes[i].size;
		block.usable = sizes[i].usable;
		torsh_live_put(&table, &block, &found);
		assert_true(torsh_live_find(&table, 16, &found));
		assert_same_block(&found, &block);
	}
	torsh_live_destroy(&table);
}

/* A target's bytes may say that it freed address 0, which no block has. */
static void address_0_is_no_block(void **state)
{
	struct live_block block = {.size = 64, .usable = 72}, found;
	struct live_table table;

	(void)state;
	torsh_live_create(&table);
	assert_false(torsh_live_take(&table, 0, &found));
	for (uint32_t i = 1; i <= 100000; i++) {
		block.address = 0x555500000000 + (uint64_t)i * 80;
		block.site = i;
		torsh_live_put(&table, &block, &found);
		assert_false(torsh_live_take(&table, 0, &found));
	}
	for (uint32_t i = 1; i <= 100000; i++) {
		assert_true(torsh_live_take(&table, 0x555500000000 + (uint64_t)i * 80, &found));
		assert_int_equal(found.site, i);
		assert_false(torsh_live_take(&table, 0, &found));
	}
	assert_int_equal(table.n_blocks, 0);
	torsh_live_destroy(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_is_like_an_array),
		cmocka_unit_test(few_addresses_are_like_an_array),
		cmocka_unit_test(addresses_that_collide_are_kept_apart),
		cmocka_unit_test(neighbours_are_kept_apart),
		cmocka_unit_test(a_block_that_is_there_is_replaced),
		cmocka_unit_test(what_is_sifted_out_is_gone_with_its_memory),
		cmocka_unit_test(a_block_takes_at_most_24_bytes),
		cmocka_unit_test(usable_sizes_are_kept),
		cmocka_unit_test(address_0_is_no_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
