/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The memory of the simulated device: extents, limits, pools. */
#include "test/unit/fixtures/simcuda_fixture.h"

#include "test/unit/fixtures/random.h"

static uint64_t free_bytes(void)
{
	return sim_device(0)->free_memory.free_bytes;
}

static void extents_give_back_what_was_taken(void **state)
{
	enum { N = 200, ROUNDS = 4000, UNIT = 512 };
	struct {
		uint64_t offset, bytes;
	} taken[N] = {0};
	struct sim_extents extents = {0};
	uint64_t random = 7;

	(void)state;
	sim_extents_give(&extents, 0, 1 << 20);
	for (int i = 0; i < ROUNDS; i++) {
		size_t k = random_below(&random, N);

		if (taken[k].bytes)
			sim_extents_give(&extents, taken[k].offset, taken[k].bytes);
		taken[k].bytes = UNIT * (1 + random_below(&random, 40));
		if (!sim_extents_take(&extents, taken[k].bytes, UNIT, &taken[k].offset))
			taken[k].bytes = 0;
		for (size_t j = 0; j < N; j++)
			assert_true(j == k || !taken[j].bytes || !taken[k].bytes ||
				    taken[j].offset >= taken[k].offset + taken[k].bytes ||
				    taken[k].offset >= taken[j].offset + taken[j].bytes);
	}
	for (size_t k = 0; k < N; k++)
		if (taken[k].bytes)
			sim_extents_give(&extents, taken[k].offset, taken[k].bytes);
	assert_int_equal(extents.n, 1);
	assert_int_equal(extents.free_bytes, 1 << 20);
	sim_extents_clear(&extents);
}

static void a_device_has_as_much_memory_as_it_reports(void **state)
{
	uint64_t before = free_bytes(), all, more;

	(void)state;
	assert_int_equal(sim_memory_alloc(sim_device(0), 1, before, &all), 0);
	assert_int_equal(sim_memory_alloc(sim_device(0), 1, 1, &more), SIM_OUT_OF_MEMORY);
	assert_int_equal(sim_memory_free(all, SIM_MEMORY_DEVICE), 0);
	assert_int_equal(free_bytes(), before);
}

static void only_the_first_byte_of_an_allocation_can_be_freed_and_once(void **state)
{
	uint64_t address;

	(void)state;
	assert_int_equal(sim_memory_alloc(sim_device(0), 1, 1000, &address), 0);
	assert_int_equal(sim_memory_free(address + 8, SIM_MEMORY_DEVICE), SIM_INVALID_VALUE);
	assert_int_equal(sim_memory_free(address, SIM_MEMORY_PINNED), SIM_INVALID_VALUE);
	assert_int_equal(sim_memory_free(address, SIM_MEMORY_DEVICE), 0);
	assert_int_equal(sim_memory_free(address, SIM_MEMORY_DEVICE), SIM_INVALID_VALUE);
}

static void a_copy_beyond_an_allocation_is_refused(void **state)
{
	struct sim_work work;
	uint64_t address;
	char host[2000];

	(void)state;
	sim_memory_alloc(sim_device(0), 1, 1000, &address);
	assert_int_equal(sim_copy_make(&work, address, (uint64_t)(uintptr_t)host, 1000, false), 0);
	assert_int_equal(sim_copy_make(&work, address, (uint64_t)(uintptr_t)host, 2000, false),
			 SIM_INVALID_VALUE);
	sim_memory_free(address, SIM_MEMORY_DEVICE);
	assert_int_equal(sim_copy_make(&work, address, (uint64_t)(uintptr_t)host, 1000, false),
			 SIM_INVALID_VALUE);
}

static void memory_that_is_registered_is_pinned_until_it_is_not(void **state)
{
	struct sim_range range;
	char *p = malloc(4096);

	(void)state;
	assert_int_equal(sim_memory_register(sim_device(0), 1, p, 4096), 0);
	assert_int_equal(sim_memory_register(sim_device(0), 1, p + 8, 8),
			 SIM_HOST_MEMORY_ALREADY_REGISTERED);
	assert_true(sim_memory_lookup((uint64_t)(uintptr_t)p + 100, &range));
	assert_int_equal(range.kind, SIM_MEMORY_PINNED);
	assert_int_equal(sim_memory_unregister(p), 0);
	assert_int_equal(sim_memory_unregister(p), SIM_HOST_MEMORY_NOT_REGISTERED);
	free(p);
}

static void a_pool_keeps_what_is_freed_until_something_is_synchronised(void **state)
{
	struct sim_stream *stream = make_stream(1);
	struct sim_pool *pool = sim_pool_create(sim_device(0));
	uint64_t before = free_bytes(), first, second;

	(void)state;
	assert_int_equal(sim_pool_alloc(pool, stream, 1 << 20, &first), 0);
	assert_int_equal(sim_pool_free(first, stream), 0);
	assert_int_equal(sim_pool_free(first, stream), SIM_INVALID_VALUE);
	sim_stream_synchronize(stream);
	assert_int_equal(pool->used_bytes, 0);
	assert_int_equal(pool->used_high_bytes, 1 << 20);
	assert_int_equal(pool->reserved_bytes, 1 << 20);
	assert_int_equal(sim_pool_alloc(pool, stream, 1 << 19, &second), 0);
	assert_int_equal(second, first);
	sim_pool_free(second, stream);
	pool->threshold_bytes = 1 << 18;
	sim_context_synchronize(context);
	assert_int_equal(pool->reserved_bytes, 1 << 18);
	sim_pool_trim(pool, 0);
	assert_int_equal(free_bytes(), before);
}

static void a_pool_frees_in_the_order_of_the_stream(void **state)
{
	struct sim_stream *stream = make_stream(1);
	struct sim_pool *pool = sim_pool_create(sim_device(0));
	uint64_t address, other;

	(void)state;
	sim_pool_alloc(pool, stream, 4096, &address);
	sim_op_unref(submit(stream, kernel("slow")));
	sim_pool_free(address, stream);
	assert_int_equal(pool->used_bytes, 4096);
	sim_pool_alloc(pool, stream, 4096, &other);
	assert_int_not_equal(other, address);
	sim_stream_synchronize(stream);
	assert_int_equal(pool->used_bytes, 4096);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(extents_give_back_what_was_taken),
		cmocka_unit_test(a_device_has_as_much_memory_as_it_reports),
		cmocka_unit_test(only_the_first_byte_of_an_allocation_can_be_freed_and_once),
		cmocka_unit_test(a_copy_beyond_an_allocation_is_refused),
		cmocka_unit_test(memory_that_is_registered_is_pinned_until_it_is_not),
		cmocka_unit_test(a_pool_keeps_what_is_freed_until_something_is_synchronised),
		cmocka_unit_test(a_pool_frees_in_the_order_of_the_stream),
	};

	return cmocka_run_group_tests(tests, begin_simulation, NULL);
}
