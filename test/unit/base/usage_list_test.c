/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Usages are read as they were added, and small ones take few bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/base/containers/usage_list.h"

static void usages_are_read_in_their_order(void **state)
{
	static const struct usage_at added[] = {
		{.number = 0, .blocks = 0, .bytes = 0},
		{.number = UINT32_MAX, .blocks = UINT64_MAX, .bytes = UINT64_MAX},
		{.number = 0, .blocks = 127, .bytes = 128},
		{.number = 5, .blocks = 1, .bytes = 1u << 31},
		{.number = 5, .blocks = 2, .bytes = UINT64_C(1) << 63},
		{.number = UINT32_MAX - 1, .blocks = 3, .bytes = 4},
	};
	struct usage_list list = {0};
	struct usage_at at = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(added) / sizeof(*added); i++)
		torsh_usage_list_add(&list, added[i].number, added[i].blocks, added[i].bytes);
	for (size_t i = 0; i < sizeof(added) / sizeof(*added); i++) {
		assert_true(torsh_usage_list_next(&list, &at));
		assert_int_equal(at.number, added[i].number);
		assert_int_equal(at.blocks, added[i].blocks);
		assert_int_equal(at.bytes, added[i].bytes);
	}
	assert_false(torsh_usage_list_next(&list, &at));
	torsh_usage_list_free(&list);
}

static void a_cleared_list_begins_anew(void **state)
{
	struct usage_list list = {0};
	struct usage_at at = {0};

	(void)state;
	torsh_usage_list_add(&list, 1000, 1, 1);
	torsh_usage_list_clear(&list);
	assert_false(torsh_usage_list_next(&list, &at));
	torsh_usage_list_add(&list, 7, 2, 3);
	assert_true(torsh_usage_list_next(&list, &at));
	assert_int_equal(at.number, 7);
	assert_false(torsh_usage_list_next(&list, &at));
	torsh_usage_list_free(&list);
}

static void small_usages_take_few_bytes(void **state)
{
	struct usage_list list = {0};

	(void)state;
	for (uint32_t i = 0; i < 1000000; i++)
		torsh_usage_list_add(&list, 3 * i, 1, 100);
	assert_int_equal(list.n_packed, 3000000);
	torsh_usage_list_free(&list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usages_are_read_in_their_order),
		cmocka_unit_test(a_cleared_list_begins_anew),
		cmocka_unit_test(small_usages_take_few_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
