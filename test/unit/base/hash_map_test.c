/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A key's number is the one that it was first put with, until the key is removed. */
#include "tools/base/containers/hash_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define N_KEYS 5000u

static void keys_keep_their_first_number(void **state)
{
	struct hash_map map = {0};
	char text[32];

	(void)state;
	for (size_t pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < N_KEYS; i++) {
			const struct hash_entry *entry;

			snprintf(text, sizeof(text), "key %zu", i);
			entry = torsh_hash_map_put_text(&map, text, i + pass * N_KEYS);
			assert_int_equal(entry->value, i);
			assert_string_equal(entry->key, text);
			assert_ptr_equal(torsh_hash_map_find(&map, text, strlen(text) + 1), entry);
		}
	}
	assert_int_equal(map.n, N_KEYS);
	torsh_hash_map_free(&map);
	assert_null(map.slots);
}

static void keys_are_bytes(void **state)
{
	static const char one[] = "a\0b", other[] = "a\0c";
	struct hash_map map = {0};

	(void)state;
	assert_null(torsh_hash_map_find(&map, one, sizeof(one)));
	assert_int_equal(torsh_hash_map_put(&map, one, sizeof(one), 1)->value, 1);
	assert_int_equal(torsh_hash_map_put(&map, other, sizeof(other), 2)->value, 2);
	assert_int_equal(torsh_hash_map_put(&map, one, 1, 3)->value, 3);
	assert_int_equal(torsh_hash_map_put(&map, "", 0, 4)->value, 4);
	assert_int_equal(torsh_hash_map_find(&map, one, sizeof(one))->value, 1);
	assert_null(torsh_hash_map_find(&map, one, 2));
	torsh_hash_map_free(&map);
}

static const struct hash_entry *find_number(const struct hash_map *map, uint64_t number)
{
	return torsh_hash_map_find(map, &number, sizeof(number));
}

/* Against an array, at all fills: what is removed is gone, and nothing else is. */
static void removed_keys_are_gone(void **state)
{
	static bool is_there[N_KEYS];
	struct hash_map map = {0};
	uint64_t random = 1;
	size_t value, n = 0;

	(void)state;
	assert_false(torsh_hash_map_remove(&map, "", 0, &value));
	for (size_t step = 0; step < 40 * N_KEYS; step++) {
		uint64_t key;

		random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		key = (random >> 33) % (step < 20 * N_KEYS ? N_KEYS : 100);
		if (is_there[key]) {
			assert_true(torsh_hash_map_remove(&map, &key, sizeof(key), &value));
			assert_int_equal(value, key + 7);
		} else {
			assert_false(torsh_hash_map_remove(&map, &key, sizeof(key), &value));
			torsh_hash_map_put(&map, &key, sizeof(key), key + 7);
		}
		n += is_there[key] ? -1 : 1;
		is_there[key] = !is_there[key];
		assert_int_equal(map.n, n);
		if (step % 5000)
			continue;
		for (uint64_t i = 0; i < N_KEYS; i++)
			assert_int_equal(!find_number(&map, i), !is_there[i]);
	}
	torsh_hash_map_free(&map);
}

static size_t n_freed;

static void count_freed(void *value)
{
	n_freed += *(size_t *)value;
}

static void iteration_meets_each_entry_once(void **state)
{
	static size_t counts[N_KEYS];
	struct hash_map map = {0};
	const struct hash_entry *entry;
	size_t at = 0, n = 0;

	(void)state;
	assert_null(torsh_hash_map_next(&map, &at));
	for (uint64_t i = 0; i < N_KEYS; i++)
		torsh_hash_map_put(&map, &i, sizeof(i), (size_t)&counts[i]);
	for (at = 0; (entry = torsh_hash_map_next(&map, &at)); n++)
		(*(size_t *)entry->value)++;
	assert_int_equal(n, N_KEYS);
	torsh_hash_map_free_values(&map, count_freed);
	assert_int_equal(n_freed, N_KEYS);
	for (size_t i = 0; i < N_KEYS; i++)
		assert_int_equal(counts[i], 1);
	assert_null(map.slots);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_keep_their_first_number),
		cmocka_unit_test(keys_are_bytes),
		cmocka_unit_test(removed_keys_are_gone),
		cmocka_unit_test(iteration_meets_each_entry_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
