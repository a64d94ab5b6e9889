/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The table of small blocks equals a plain array after any additions and removals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "test/unit/fixtures/sanitized.h"
#include "tools/writer/fold/tables/small_table.h"

#define N_PLACES 400000u
#define N_CHANGES UNLESS_SANITIZED(3000000u, 1000000u)

struct model {
	struct small_block *blocks; /* by place; address 0: none */
	uint64_t n, bytes, usable_bytes;
};

static uint64_t address_of(uint32_t place)
{
	static const uint64_t bases[] = {0x555500000000, 0x7f0000000000, 0xffffff000000};

	return bases[place % 3] + (uint64_t)place * 8;
}

static void change_one(struct small_table *table, struct model *model, uint32_t place,
		       uint64_t *random)
{
	static const uint64_t excesses[] = {0, 8, 24, 254};
	struct small_block *known = &model->blocks[place], block = {.address = address_of(place)};

	assert_int_equal(torsh_small_has(table, block.address), known->address != 0);
	if (known->address) {
		assert_true(torsh_small_take(table, block.address, &block));
		assert_memory_equal(&block, known, sizeof(block));
		model->n--;
		model->bytes -= block.size;
		model->usable_bytes -= block.usable;
		known->address = 0;
	} else {
		assert_false(torsh_small_take(table, block.address, &block));
		block.size = random_below(random, SMALL_SIZE_MAX + 1);
		block.usable = random_below(random, 8)
				       ? block.size + excesses[random_below(random, 4)]
				       : 0;
		assert_true(torsh_small_fits(&block));
		torsh_small_add(table, &block);
		model->n++;
		model->bytes += block.size;
		model->usable_bytes += block.usable;
		*known = block;
	}
	assert_int_equal(table->n_blocks, model->n);
	assert_int_equal(table->bytes, model->bytes);
	assert_int_equal(table->usable_bytes, model->usable_bytes);
}

static void a_table_is_like_an_array(void **state)
{
	struct model model = {.blocks = calloc(N_PLACES, sizeof(*model.blocks))};
	struct small_table table = {0};
	uint64_t random = 1;

	(void)state;
	/* It fills, is half full for long, and empties. */
	for (uint32_t i = 0; i < N_PLACES; i++)
		change_one(&table, &model, i, &random);
	for (uint32_t i = 0; i < N_CHANGES; i++)
		change_one(&table, &model, (uint32_t)random_below(&random, N_PLACES), &random);
	for (uint32_t i = 0; i < N_PLACES; i++) {
		if (model.blocks[i].address)
			change_one(&table, &model, i, &random);
	}
	assert_int_equal(table.n_blocks, 0);
	torsh_small_destroy(&table);
	free(model.blocks);
}

static void what_a_row_cannot_express_does_not_fit(void **state)
{
	static const struct {
		struct small_block block;
		bool fits;
	} blocks[] = {
		{{0x1000, 0, 0}, true},
		{{0xfffffffffff8, SMALL_SIZE_MAX, SMALL_SIZE_MAX + 254}, true},
		{{0x1000, 24, 24}, true},
		{{0x1004, 24, 24}, false},
		{{0x1000000000000, 24, 24}, false},
		{{0x1000, SMALL_SIZE_MAX + 1, 0}, false},
		{{0x1000, 24, 24 + 255}, false},
		{{0, 24, 24}, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++)
		assert_int_equal(torsh_small_fits(&blocks[i].block), blocks[i].fits);
}

static void no_address_that_does_not_fit_is_found(void **state)
{
	struct small_table table = {0};
	struct small_block block = {.address = 0x7f0000001000, .size = 8, .usable = 24};

	(void)state;
	torsh_small_add(&table, &block);
	for (uint64_t bit = 0; bit < 64; bit++)
		assert_false(torsh_small_has(&table, block.address ^ UINT64_C(1) << bit));
	assert_true(torsh_small_has(&table, block.address));
	torsh_small_destroy(&table);
}

static void a_block_takes_some_ten_bytes(void **state)
{
	struct small_table table = {0};

	(void)state;
	for (uint32_t i = 1; i <= 2000000; i++) {
		torsh_small_add(&table,
				&(struct small_block){.address = 0x7f0000000000 + (uint64_t)i * 64,
						      .size = 48});
		if (i > 400000 && i % 1000 == 0)
			assert_true(torsh_small_bytes(&table) < i * UINT64_C(23) / 2);
	}
	torsh_small_destroy(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table_is_like_an_array),
		cmocka_unit_test(what_a_row_cannot_express_does_not_fit),
		cmocka_unit_test(no_address_that_does_not_fit_is_found),
		cmocka_unit_test(a_block_takes_some_ten_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
