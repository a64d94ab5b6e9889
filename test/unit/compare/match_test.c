/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Lines that are matched: of functions that stay, move within a file or to another one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/compare/compare.h"
#include "tools/symbols/symbols.h"

static struct comparison comparison;

static int begin(void **state)
{
	const struct change_rules rules = {0};

	(void)state;
	torsh_comparison_begin(&comparison, 1, 1, &rules);
	return 0;
}

static int end(void **state)
{
	(void)state;
	torsh_comparison_free(&comparison);
	return 0;
}

/* Add a line of Python with an amount to one side. */
static void add(enum compare_side side, const char *file, const char *function, int line,
		uint64_t amount)
{
	static struct frame frames[16];
	static size_t n;
	struct frame *frame = &frames[n++ % 16];
	const struct frame *stack[] = {frame};
	struct place place;

	*frame = (struct frame){.is_python = true,
				.file = (char *)(uintptr_t)file,
				.function = (char *)(uintptr_t)function,
				.line = line};
	assert_true(torsh_place_make_line(&place, stack, 1));
	torsh_compare_place_row(&comparison, COMPARE_LINES, side, &place)->amounts[0][side] =
		amount;
}

/* Match, and return how many rows are left. */
static size_t match(void)
{
	torsh_compare_match(&comparison, COMPARE_LINES);
	return comparison.tables[COMPARE_LINES].n;
}

static const struct compare_row *row(size_t i)
{
	return &comparison.tables[COMPARE_LINES].items[i];
}

static void a_function_that_moves_within_its_file_is_the_same(void **state)
{
	(void)state;
	add(COMPARE_BEFORE, "/home/u/train.py", "load", 10, 500);
	add(COMPARE_BEFORE, "/home/u/train.py", "step", 20, 900);
	add(COMPARE_AFTER, "/home/u/train.py", "step", 11, 900);
	add(COMPARE_AFTER, "/home/u/train.py", "load", 40, 500);
	assert_int_equal(match(), 2);
	for (size_t i = 0; i < 2; i++) {
		assert_true(row(i)->is_moved);
		assert_int_equal(row(i)->amounts[0][COMPARE_BEFORE],
				 row(i)->amounts[0][COMPARE_AFTER]);
	}
}

static void a_function_that_moves_to_another_file_is_the_same_while_the_old_file_stays(void **state)
{
	(void)state;
	add(COMPARE_BEFORE, "/home/u/train.py", "main", 50, 100);
	add(COMPARE_BEFORE, "/home/u/train.py", "load", 10, 500);
	add(COMPARE_BEFORE, "/home/u/data.py", "open_all", 5, 30);
	add(COMPARE_AFTER, "/home/u/train.py", "main", 50, 100);
	add(COMPARE_AFTER, "/home/u/data.py", "open_all", 5, 30);
	add(COMPARE_AFTER, "/home/u/data.py", "load", 17, 510);
	assert_int_equal(match(), 3);
	for (size_t i = 0; i < 3; i++) {
		assert_true(row(i)->is_on[COMPARE_BEFORE] && row(i)->is_on[COMPARE_AFTER]);
		assert_int_equal(row(i)->is_moved, row(i)->amounts[0][COMPARE_BEFORE] == 500);
	}
}

static void functions_of_one_name_in_two_files_are_two(void **state)
{
	(void)state;
	add(COMPARE_BEFORE, "/home/u/train.py", "load", 10, 500);
	add(COMPARE_BEFORE, "/home/u/data.py", "load", 5, 30);
	add(COMPARE_AFTER, "/home/u/data.py", "load", 5, 30);
	assert_int_equal(match(), 2);
	assert_false(row(0)->is_moved || row(1)->is_moved);
}

static void module_level_code_of_another_file_is_another(void **state)
{
	(void)state;
	add(COMPARE_BEFORE, "/home/u/train.py", "main", 50, 100);
	add(COMPARE_BEFORE, "/home/u/train.py", "<module>", 3, 500);
	add(COMPARE_AFTER, "/home/u/train.py", "main", 50, 100);
	add(COMPARE_AFTER, "/home/u/data.py", "<module>", 3, 500);
	assert_int_equal(match(), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
		TEST(a_function_that_moves_within_its_file_is_the_same),
		TEST(a_function_that_moves_to_another_file_is_the_same_while_the_old_file_stays),
		TEST(functions_of_one_name_in_two_files_are_two),
		TEST(module_level_code_of_another_file_is_another),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
