/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A key's number is the one that it was first put with. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_keep_their_first_number),
		cmocka_unit_test(keys_are_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
