/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The table that only grows: what was put in is found, by all threads, with one value for all of
 * them.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/producer/key_map.h"

#define N_KEYS 100000u
#define N_THREADS 4u

static struct key_map map;

static void what_was_added_is_found(void **state)
{
	struct key_map own = {.newest = NULL};

	(void)state;
	assert_int_equal(torsh_key_map_find(&own, 1), 0);
	for (uint64_t key = 1; key <= N_KEYS; key++) {
		assert_int_equal(torsh_key_map_find(&own, key), 0);
		assert_int_equal(torsh_key_map_add(&own, key, key * 3), key * 3);
	}
	for (uint64_t key = 1; key <= N_KEYS; key++)
		assert_int_equal(torsh_key_map_find(&own, key), key * 3);
	assert_int_equal(torsh_key_map_find(&own, N_KEYS + 1), 0);
}

static void the_first_value_stands(void **state)
{
	struct key_map own = {.newest = NULL};

	(void)state;
	assert_int_equal(torsh_key_map_add(&own, 7, 1), 1);
	assert_int_equal(torsh_key_map_add(&own, 7, 2), 1);
	assert_int_equal(torsh_key_map_find(&own, 7), 1);
}

static void *add_all(void *own_value)
{
	uintptr_t n_others = 0;

	for (uint64_t key = 1; key <= N_KEYS; key++) {
		if (torsh_key_map_add(&map, key, (uintptr_t)own_value) != (uintptr_t)own_value)
			n_others++;
	}
	return (void *)n_others;
}

static void threads_agree(void **state)
{
	pthread_t threads[N_THREADS];

	(void)state;
	for (uintptr_t i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_all, (void *)(i + 1)), 0);
	for (uint32_t i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (uint64_t key = 1; key <= N_KEYS; key++) {
		uint64_t value = torsh_key_map_find(&map, key);

		assert_in_range(value, 1, N_THREADS);
		assert_int_equal(torsh_key_map_find(&map, key), value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_added_is_found),
		cmocka_unit_test(the_first_value_stands),
		cmocka_unit_test(threads_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
