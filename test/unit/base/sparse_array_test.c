/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Arrays with few items in use: what was put is found, nothing else is there, and memory is
 * taken for little more.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tools/base/containers/sparse_array.h"

#define ITEM_BYTES 24u

/* Numbers that lie close to each other and far apart, ascending. */
static const size_t numbers[] = {
	0, 1, 127, 128, 169, 170, 171, 5000, (1u << 22) - 1, 1u << 22, 1000003u * 7};

#define N_NUMBERS (sizeof(numbers) / sizeof(*numbers))

struct item {
	size_t number;
	uint64_t rest[2];
};

_Static_assert(sizeof(struct item) == ITEM_BYTES, "items fill no piece evenly");

static void fill(struct sparse_array *array)
{
	torsh_sparse_array_create(array, sizeof(struct item));
	/* From the end: a directory that is large already holds the small numbers, too. */
	for (size_t i = N_NUMBERS; i; i--)
		((struct item *)torsh_sparse_array_at(array, numbers[i - 1]))->number =
			numbers[i - 1] + 1;
}

static void items_stay_where_they_are(void **state)
{
	struct sparse_array array;
	struct item *first;

	(void)state;
	torsh_sparse_array_create(&array, sizeof(struct item));
	first = torsh_sparse_array_at(&array, 3);
	first->number = 4;
	for (size_t i = 0; i < N_NUMBERS; i++)
		torsh_sparse_array_at(&array, numbers[i]);
	assert_ptr_equal(torsh_sparse_array_find(&array, 3), first);
	assert_int_equal(first->number, 4);
	torsh_sparse_array_destroy(&array);
}

static void what_was_put_is_found(void **state)
{
	struct sparse_array array;

	(void)state;
	fill(&array);
	for (size_t i = 0; i < N_NUMBERS; i++) {
		const struct item *item = torsh_sparse_array_find(&array, numbers[i]);

		assert_non_null(item);
		assert_int_equal(item->number, numbers[i] + 1);
	}
	torsh_sparse_array_destroy(&array);
}

static void what_nobody_wanted_is_zeros_or_not_there(void **state)
{
	static const struct item zeros;
	struct sparse_array array;

	(void)state;
	torsh_sparse_array_create(&array, sizeof(struct item));
	assert_null(torsh_sparse_array_find(&array, 0));
	torsh_sparse_array_destroy(&array);
	fill(&array);
	assert_memory_equal(torsh_sparse_array_at(&array, 2), &zeros, sizeof(zeros));
	assert_memory_equal(torsh_sparse_array_at(&array, 1u << 21), &zeros, sizeof(zeros));
	assert_null(torsh_sparse_array_find(&array, 3u << 20));
	assert_null(torsh_sparse_array_find(&array, SIZE_MAX));
	torsh_sparse_array_destroy(&array);
}

static void all_in_use_are_gone_over_in_their_order(void **state)
{
	struct sparse_array array;
	const struct item *item;
	size_t n_found = 0, n_seen = 0;

	(void)state;
	fill(&array);
	for (size_t i = 0; (item = torsh_sparse_array_next(&array, &i)); i++, n_seen++) {
		if (!item->number)
			continue;
		assert_true(n_found < N_NUMBERS);
		assert_int_equal(i, numbers[n_found]);
		assert_int_equal(item->number, i + 1);
		n_found++;
	}
	assert_int_equal(n_found, N_NUMBERS);
	/* Some pieces of 4 KiB, not the millions between. */
	assert_true(n_seen < N_NUMBERS * 4096 / ITEM_BYTES);
	torsh_sparse_array_destroy(&array);
}

static void items_larger_than_a_piece_are_taken_one_by_one(void **state)
{
	struct sparse_array array;
	char *first, *other;

	(void)state;
	torsh_sparse_array_create(&array, 10000);
	first = torsh_sparse_array_at(&array, 0);
	other = torsh_sparse_array_at(&array, 1);
	memset(first, 1, 10000);
	assert_int_equal(other[0], 0);
	assert_null(torsh_sparse_array_find(&array, 2));
	torsh_sparse_array_destroy(&array);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_stay_where_they_are),
		cmocka_unit_test(what_was_put_is_found),
		cmocka_unit_test(what_nobody_wanted_is_zeros_or_not_there),
		cmocka_unit_test(all_in_use_are_gone_over_in_their_order),
		cmocka_unit_test(items_larger_than_a_piece_are_taken_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
