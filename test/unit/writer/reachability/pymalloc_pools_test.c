/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Pools of CPython's allocator that a model of it has made, and damaged ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "tools/writer/reachability/python/pymalloc_pools.h"

#define BASE UINT64_C(0x7f0000010000)
#define HEADER_BYTES 48u
#define N_ACTIONS 3000u

/* As obmalloc.c does it, in memory that is not at its address. */
struct model {
	uint64_t words[POOL_BYTES_MAX / 8];
	uint32_t pool_bytes, block_bytes;
	bool is_used[POOL_BLOCKS_MAX];
};

static uint32_t *header(struct model *model, size_t offset)
{
	return (uint32_t *)model->words + offset / 4;
}

static void begin(struct model *model, uint32_t pool_bytes, uint32_t size_class)
{
	memset(model, 0, sizeof(*model));
	model->pool_bytes = pool_bytes;
	model->block_bytes = (size_class + 1) * 16;
	*header(model, 36) = size_class;
	*header(model, 40) = HEADER_BYTES + 2 * model->block_bytes;
	*header(model, 44) = pool_bytes - model->block_bytes;
	*header(model, 0) = 1;
	model->is_used[0] = true;
	model->words[1] = BASE + HEADER_BYTES + model->block_bytes;
}

static void allocate(struct model *model)
{
	uint64_t at = model->words[1];
	uint32_t next = *header(model, 40);

	if (!at) {
		if (next > *header(model, 44))
			return;
		at = BASE + next;
		*header(model, 40) += model->block_bytes;
	} else {
		model->words[1] = model->words[(at - BASE) / 8];
	}
	model->is_used[(at - BASE - HEADER_BYTES) / model->block_bytes] = true;
	model->words[(at - BASE) / 8] = 0x1234; /* what the program writes there */
	++*header(model, 0);
}

static void release(struct model *model, uint32_t block)
{
	uint64_t at = BASE + HEADER_BYTES + block * model->block_bytes;

	if (!model->is_used[block])
		return;
	model->is_used[block] = false;
	model->words[(at - BASE) / 8] = model->words[1];
	model->words[1] = at;
	--*header(model, 0);
}

static void check(struct model *model)
{
	struct pymalloc_pool pool;
	uint32_t n_max = (model->pool_bytes - HEADER_BYTES) / model->block_bytes;

	assert_true(torsh_pymalloc_pool_read(&pool, BASE, model->words, model->pool_bytes / 8));
	assert_int_equal(pool.bytes, model->pool_bytes);
	assert_int_equal(pool.block_bytes, model->block_bytes);
	for (uint32_t i = 0; i < n_max; i++)
		assert_int_equal(i < pool.n_blocks && torsh_pymalloc_is_used(&pool, i),
				 model->is_used[i]);
}

static void blocks_in_use_are_those_of_a_model(void **state)
{
	static struct model model;
	uint64_t random = 11;

	(void)state;
	for (uint32_t size_class = 0; size_class < 32; size_class++) {
		begin(&model, size_class % 2 ? 4096 : POOL_BYTES_MAX, size_class);
		for (uint32_t i = 0; i < N_ACTIONS; i++) {
			uint32_t n_max = (model.pool_bytes - HEADER_BYTES) / model.block_bytes;

			if (random_below(&random, 3))
				allocate(&model);
			else
				release(&model, (uint32_t)random_below(&random, n_max));
			if (i % 16 == 0)
				check(&model);
		}
	}
}

static void what_does_not_agree_is_no_pool(void **state)
{
	static struct model model, damaged;
	struct pymalloc_pool pool;
	uint64_t random = 5;

	(void)state;
	begin(&model, POOL_BYTES_MAX, 3);
	for (int i = 0; i < 100; i++)
		allocate(&model);
	for (uint32_t i = 0; i < 90; i += 3)
		release(&model, i);
	check(&model);
	assert_false(torsh_pymalloc_pool_read(&pool, BASE + 4096, model.words, 2048));
	assert_false(torsh_pymalloc_pool_read(&pool, BASE, model.words, 5)); /* half a header */
	assert_false(torsh_pymalloc_pool_read(&pool, BASE, model.words, 100)); /* of the list */
	damaged = model;
	++*header(&damaged, 0); /* one more in use than the list leaves */
	assert_false(torsh_pymalloc_pool_read(&pool, BASE, damaged.words, 2048));
	damaged = model;
	damaged.words[(model.words[1] - BASE) / 8] = model.words[1]; /* a loop */
	assert_false(torsh_pymalloc_pool_read(&pool, BASE, damaged.words, 2048));
	/* Nothing of this is read beyond the words: the sanitizers would see it. */
	for (int i = 0; i < 20000; i++) {
		uint64_t words[POOL_BYTES_MAX / 8 / 8];

		memcpy(words, model.words, sizeof(words));
		for (int k = 0; k < 3; k++)
			words[random_below(&random, 6)] =
				random_next(&random) >> random_below(&random, 64);
		torsh_pymalloc_pool_read(&pool, BASE, words, sizeof(words) / 8);
	}
}

/* The last block's end is on a page that was never written. */
static void words_that_were_never_written_are_zero(void **state)
{
	static struct model model;
	struct pymalloc_pool pool;
	uint32_t block_bytes = 432;

	(void)state;
	begin(&model, POOL_BYTES_MAX, block_bytes / 16 - 1);
	for (int i = 0; i < 8; i++)
		allocate(&model);
	model.words[1] = BASE + HEADER_BYTES + 9 * block_bytes; /* free, its first word is 0 */
	*header(&model, 40) = HEADER_BYTES + 10 * block_bytes;
	assert_in_range(*header(&model, 40), 4097, 8192);
	assert_true(torsh_pymalloc_pool_read(&pool, BASE, model.words, 4096 / 8));
	assert_int_equal(pool.n_blocks, 10);
	assert_true(torsh_pymalloc_is_used(&pool, 8));
	assert_false(torsh_pymalloc_is_used(&pool, 9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_in_use_are_those_of_a_model),
		cmocka_unit_test(words_that_were_never_written_are_zero),
		cmocka_unit_test(what_does_not_agree_is_no_pool),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
