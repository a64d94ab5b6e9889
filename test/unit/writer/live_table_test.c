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
	uint8_t *is_live;
	uint64_t *size;
	uint64_t n_live;
};

static uint64_t address_of(uint32_t place)
{
	/* Three heaps, one of addresses that are no multiples of 16. */
	static const uint64_t bases[] = {0x555500000000, 0x7f0000000000, 0x7fff00000008};

	return bases[place % 3] + (uint64_t)place * 48;
}

static void change_one(struct live_table *table, struct model *model, uint32_t place, uint64_t size)
{
	uint64_t address = address_of(place);
	struct live_block *block = torsh_live_find(table, address);
	bool is_there;

	assert_int_equal(block != NULL, model->is_live[place]);
	if (block) {
		assert_int_equal(block->address, address);
		assert_int_equal(block->size, model->size[place]);
		torsh_live_remove(table, block);
		model->n_live--;
	} else {
		block = torsh_live_add(table, address, &is_there);
		assert_int_equal(is_there, 0);
		block->size = size;
		block->site = place;
		model->size[place] = size;
		model->n_live++;
	}
	model->is_live[place] ^= 1;
	assert_int_equal(table->n_blocks, model->n_live);
}

static void assert_same_blocks(const struct live_table *table, const struct model *model)
{
	uint8_t *seen = calloc(N_PLACES, 1);
	struct live_block *block;
	uint64_t at = 0, n = 0;

	while ((block = torsh_live_next(table, &at))) {
		assert_true(model->is_live[block->site]);
		assert_int_equal(seen[block->site], 0);
		assert_int_equal(block->address, address_of(block->site));
		assert_int_equal(block->size, model->size[block->site]);
		seen[block->site] = 1;
		n++;
	}
	assert_int_equal(n, model->n_live);
	free(seen);
}

static void a_table_is_like_an_array(void **state)
{
	struct model model = {.is_live = calloc(N_PLACES, 1),
			      .size = calloc(N_PLACES, sizeof(uint64_t))};
	struct live_table table;
	uint64_t random = 1;

	(void)state;
	torsh_live_create(&table);
	for (int round = 0; round < UNLESS_SANITIZED(6, 2); round++) {
		/* Grows in one round, shrinks in the next: places that are live go first. */
		for (uint32_t i = 0; i < N_PLACES; i++) {
			uint32_t place = (uint32_t)random_below(&random, N_PLACES);

			if (model.is_live[place] == (round & 1) || random_below(&random, 4) == 0)
				change_one(&table, &model, place,
					   random_next(&random) & LIVE_SIZE_MAX);
		}
		assert_same_blocks(&table, &model);
	}
	torsh_live_destroy(&table);
	free(model.is_live);
	free(model.size);
}

/* The address with this hash: the table multiplies by an odd number, this by its inverse. */
static uint64_t address_with_hash(uint64_t hash)
{
	uint64_t factor = UINT64_C(0x9e3779b97f4a7c15), inverse = factor;

	for (int i = 0; i < 5; i++)
		inverse *= 2 - factor * inverse;
	return hash * inverse;
}

#define N_COLLIDING 300u /* fewer than make the first page grow */

/*
 * All belong into one line of the first page, which has 256: add them all, look for them, remove
 * them in any order.
 */
static void crowd_one_line(struct live_table *table, uint32_t line, uint64_t *random)
{
	uint64_t order[N_COLLIDING];
	bool is_there;

	for (uint32_t i = 0; i < N_COLLIDING; i++) {
		order[i] = address_with_hash((uint64_t)line << 56 | (i + 1));
		torsh_live_add(table, order[i], &is_there)->size = i;
		assert_int_equal(is_there, 0);
	}
	for (uint32_t i = 0; i < N_COLLIDING; i++)
		assert_int_equal(torsh_live_find(table, order[i])->size, i);
	for (uint32_t n = N_COLLIDING; n > 0; n--) {
		uint32_t chosen = (uint32_t)random_below(random, n);
		uint64_t address = order[chosen];

		torsh_live_remove(table, torsh_live_find(table, address));
		assert_null(torsh_live_find(table, address));
		order[chosen] = order[n - 1];
		for (uint32_t i = 0; i + 1 < n; i += 37)
			assert_non_null(torsh_live_find(table, order[i]));
	}
	assert_int_equal(table->n_blocks, 0);
}

static void addresses_that_collide_are_kept_apart(void **state)
{
	struct live_table table;
	uint64_t random = 2, at = 0;

	(void)state;
	torsh_live_create(&table);
	for (uint32_t line = 0; line < 256; line++)
		crowd_one_line(&table, line, &random);
	assert_null(torsh_live_next(&table, &at));
	/* So many blocks passed every line that each keeps its mark of blocks further on. */
	assert_null(torsh_live_find(&table, 16));
	torsh_live_destroy(&table);
}

static void a_block_that_is_there_is_not_added(void **state)
{
	struct live_block *first, *second;
	struct live_table table;
	bool is_there;

	(void)state;
	torsh_live_create(&table);
	first = torsh_live_add(&table, 0x1000, &is_there);
	assert_int_equal(is_there, 0);
	first->size = 77;
	second = torsh_live_add(&table, 0x1000, &is_there);
	assert_int_equal(is_there, 1);
	assert_int_equal(second->size, 77);
	assert_int_equal(table.n_blocks, 1);
	torsh_live_destroy(&table);
}

static bool is_of_others(void *context, const struct live_block *block)
{
	struct model *model = context;

	if (block->site % 8 == 0)
		return false;
	model->is_live[block->site] = 0;
	model->n_live--;
	return true;
}

static void what_is_sifted_out_is_gone_with_its_memory(void **state)
{
	struct model model = {.is_live = calloc(N_PLACES, 1),
			      .size = calloc(N_PLACES, sizeof(uint64_t))};
	struct live_table table;
	uint64_t random = 5, before;

	(void)state;
	torsh_live_create(&table);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < N_PLACES; i++) {
			if (!model.is_live[i])
				change_one(&table, &model, i, i);
		}
		before = torsh_live_bytes(&table);
		torsh_live_sift(&table, is_of_others, &model);
		assert_same_blocks(&table, &model);
		assert_true(torsh_live_bytes(&table) < before / 4);
		for (uint32_t i = 0; i < N_PLACES; i++)
			change_one(&table, &model, (uint32_t)random_below(&random, N_PLACES), i);
		assert_same_blocks(&table, &model);
	}
	torsh_live_destroy(&table);
	free(model.is_live);
	free(model.size);
}

#define N_FIRST_WEIGHED 400000u
#define N_WEIGHED 3200000u /* eight times as many: every size of a page is among them */

static void a_block_takes_forty_bytes(void **state)
{
	struct live_table table;
	double sum = 0, most = 0;
	uint32_t n = 0;
	bool is_there;

	(void)state;
	torsh_live_create(&table);
	for (uint32_t i = 1; i <= N_WEIGHED; i++) {
		double each;

		torsh_live_add(&table, 0x7f0000000000 + (uint64_t)i * 48, &is_there);
		if (i < N_FIRST_WEIGHED || i % 1000)
			continue;
		each = (double)torsh_live_bytes(&table) / i;
		most = each > most ? each : most;
		sum += each;
		n++;
	}
	assert_true(sum / n < 41);
	assert_true(most < 47);
	for (uint32_t i = 1; i <= N_WEIGHED; i++)
		assert_non_null(torsh_live_find(&table, 0x7f0000000000 + (uint64_t)i * 48));
	torsh_live_destroy(&table);
}

static void usable_sizes_are_kept(void **state)
{
	static const struct {
		uint64_t size, usable, kept;
	} sizes[] = {
		{0, 24, 24},
		{10, 10, 10},
		{100, 0, 0}, /* unknown */
		{100, 50, 0}, /* can't be */
		{UINT64_C(17) << 30, UINT64_C(22) << 30, UINT64_C(22) << 30},
		{4097, UINT64_C(1) << 41, UINT64_C(1) << 41},
		{1, (UINT64_C(1) << 41) + 16, 0}, /* no whole pages */
		{1, UINT64_C(1) << 44, 0},
		{0, 0, 0},
	};
	struct live_block block = {.address = 16};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		block.size = sizes[i].size;
		torsh_live_set_usable(&block, sizes[i].usable);
		assert_int_equal(torsh_live_usable(&block), sizes[i].kept);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_is_like_an_array),
		cmocka_unit_test(addresses_that_collide_are_kept_apart),
		cmocka_unit_test(a_block_that_is_there_is_not_added),
		cmocka_unit_test(what_is_sifted_out_is_gone_with_its_memory),
		cmocka_unit_test(a_block_takes_forty_bytes),
		cmocka_unit_test(usable_sizes_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
