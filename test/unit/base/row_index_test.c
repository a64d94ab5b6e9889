/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rows are found by their numbers, in whatever order these came. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tools/base/containers/row_index.h"

#define N 50000u

/* Add a row for each number, and check that they, and no others, are found. */
static void check(const uint32_t *numbers, uint32_t n)
{
	struct row_index index = {0};
	uint32_t *rows = calloc(4 * N, sizeof(*rows)), n_rows = 0;

	assert_non_null(rows);
	for (uint32_t i = 0; i < n; i++) {
		if (rows[numbers[i]])
			continue;
		torsh_row_index_add(&index, numbers[i], n_rows);
		rows[numbers[i]] = ++n_rows;
	}
	for (uint32_t i = 0; i < 4 * N; i++)
		assert_int_equal(torsh_row_index_find(&index, i),
				 rows[i] ? rows[i] - 1 : ROW_INDEX_NONE);
	assert_int_equal(torsh_row_index_find(&index, UINT32_MAX), ROW_INDEX_NONE);
	torsh_row_index_destroy(&index);
	free(rows);
}

static void rows_in_order_are_found(void **state)
{
	uint32_t *numbers = calloc(N, sizeof(*numbers));

	(void)state;
	for (uint32_t i = 0; i < N; i++)
		numbers[i] = i * 4 - i % 3;
	numbers[0] = 0;
	check(numbers, 0);
	check(numbers, N);
	free(numbers);
}

static void rows_out_of_order_are_found(void **state)
{
	uint32_t *numbers = calloc(N, sizeof(*numbers)), random = 1;

	(void)state;
	for (unsigned every = 1; every <= 1000; every *= 10) {
		for (uint32_t i = 0; i < N; i++) {
			random = random * 1664525 + 1013904223;
			numbers[i] = (random >> 8) % every ? i * 2 : (random >> 4) % (4 * N);
		}
		check(numbers, N);
	}
	for (uint32_t i = 0; i < N; i++)
		numbers[i] = N - i;
	check(numbers, N);
	free(numbers);
}

/* As those of a short process are, whose session has millions of stacks. */
static void rows_far_apart_are_found(void **state)
{
	enum { ROWS = 1000, APART = 4000037 };
	struct row_index index = {0};

	(void)state;
	for (uint32_t i = 0; i < ROWS; i++)
		torsh_row_index_add(&index, i * APART, i);
	for (uint32_t i = 0; i < ROWS; i++) {
		assert_int_equal(torsh_row_index_find(&index, i * APART), i);
		assert_int_equal(torsh_row_index_find(&index, i * APART + 1), ROW_INDEX_NONE);
	}
	assert_true(index.groups_room <= 2 * ROWS);
	assert_true(index.by_number.mask < 4 * ROWS);
	torsh_row_index_destroy(&index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_in_order_are_found),
		cmocka_unit_test(rows_out_of_order_are_found),
		cmocka_unit_test(rows_far_apart_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
