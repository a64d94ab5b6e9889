/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* An array keeps what is in it as it grows, and what is new in it is zero. */
#include "tools/base/containers/array.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_ITEMS 100000u

/* What can't be had is NULL, as from malloc. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static void what_is_reserved_is_zeroed_and_the_rest_stays(void **state)
{
	uint32_t *items = NULL;
	size_t n_room = 0;

	(void)state;
	for (uint32_t i = 0; i < N_ITEMS; i++) {
		items = torsh_array_reserve(items, i, &n_room, sizeof(*items));
		assert_true(n_room > i);
		assert_int_equal(items[i], 0);
		items[i] = i + 1;
	}
	for (uint32_t i = 0; i < N_ITEMS; i++)
		assert_int_equal(items[i], i + 1);
	assert_true(n_room <= N_ITEMS * 3 / 2 + 16);
	/* As after a pop: what the item held before is gone. */
	items = torsh_array_reserve(items, 7, &n_room, sizeof(*items));
	assert_int_equal(items[7], 0);
	assert_int_equal(items[8], 9);
	free(items);
}

static void what_is_extended_is_zero_up_to_its_room(void **state)
{
	uint8_t *items = NULL;
	size_t n_room = 0, n_before;

	(void)state;
	for (size_t n = 1; n < N_ITEMS; n *= 7) {
		n_before = n_room;
		items = torsh_array_extend(items, n, &n_room, 1);
		assert_true(n_room >= n);
		for (size_t i = n_before; i < n_room; i++)
			assert_int_equal(items[i], 0);
		memset(items, 0xff, n_room);
	}
	n_before = n_room;
	items = torsh_array_extend(items, 1, &n_room, 1);
	assert_int_equal(n_room, n_before);
	assert_int_equal(items[0], 0xff);
	free(items);
}

static void what_no_memory_can_hold_changes_nothing(void **state)
{
	static const size_t too_many[] = {SIZE_MAX, SIZE_MAX / 3 * 2, UINT32_MAX,
					  UINT32_MAX / 4 * 3};
	size_t n_room = 0;
	char *items = torsh_array_reserve(NULL, 0, &n_room, 1);

	(void)state;
	items[0] = 'a';
	for (size_t i = 0; i < sizeof(too_many) / sizeof(*too_many); i++) {
		size_t n_before = n_room;

		assert_null(torsh_array_try_grow(items, too_many[i], &n_room, 1));
		assert_int_equal(n_room, n_before);
	}
	assert_null(torsh_array_try_grow(items, 100, &n_room, SIZE_MAX / 100));
	assert_int_equal(items[0], 'a');
	assert_ptr_equal(torsh_array_try_grow(items, n_room, &n_room, 1), items);
	free(items);
}

/* The kernel can move it without a copy only then. */
static void a_large_array_lies_in_one_mapping(void **state)
{
	uintptr_t page = 4096, start, end, from, to;
	bool is_found = false;
	size_t n_room = 0;
	char line[512], *items = torsh_array_extend(NULL, (size_t)8 << 20, &n_room, 1);
	FILE *maps = fopen("/proc/self/maps", "r");

	(void)state;
	assert_non_null(maps);
	start = (uintptr_t)items / page * page;
	end = (uintptr_t)items + n_room;
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) == 2 && from <= start &&
		    end <= to)
			is_found = true;
	fclose(maps);
	assert_true(is_found);
	free(items);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_reserved_is_zeroed_and_the_rest_stays),
		cmocka_unit_test(what_is_extended_is_zero_up_to_its_room),
		cmocka_unit_test(what_no_memory_can_hold_changes_nothing),
		cmocka_unit_test(a_large_array_lies_in_one_mapping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
