/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The validator takes what Unicode's table 3-7 calls well-formed, and nothing else. */
#include "tools/base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static size_t bytes_of(const char *text)
{
	return torsh_utf8_bytes(text, strlen(text));
}

static void characters_of_each_length_are_taken(void **state)
{
	(void)state;
	assert_int_equal(bytes_of("a"), 1);
	assert_int_equal(bytes_of("\x7f"), 1);
	assert_int_equal(bytes_of("\xc2\x80"), 2);
	assert_int_equal(bytes_of("\xdf\xbf"), 2);
	assert_int_equal(bytes_of("\xe0\xa0\x80"), 3);
	assert_int_equal(bytes_of("\xed\x9f\xbf"), 3);
	assert_int_equal(bytes_of("\xee\x80\x80"), 3);
	assert_int_equal(bytes_of("\xf0\x90\x80\x80"), 4);
	assert_int_equal(bytes_of("\xf4\x8f\xbf\xbf"), 4);
	assert_int_equal(torsh_utf8_bytes("\0", 1), 1);
	assert_int_equal(torsh_utf8_bytes("", 0), 0);
}

static void overlong_forms_are_refused(void **state)
{
	(void)state;
	assert_int_equal(bytes_of("\xc0\x80"), 0);
	assert_int_equal(bytes_of("\xc1\xbf"), 0);
	assert_int_equal(bytes_of("\xe0\x80\x80"), 0);
	assert_int_equal(bytes_of("\xe0\x9f\xbf"), 0);
	assert_int_equal(bytes_of("\xf0\x80\x80\x80"), 0);
	assert_int_equal(bytes_of("\xf0\x8f\xbf\xbf"), 0);
}

static void surrogates_are_refused(void **state)
{
	(void)state;
	assert_int_equal(bytes_of("\xed\xa0\x80"), 0);
	assert_int_equal(bytes_of("\xed\xbf\xbf"), 0);
}

static void what_lies_beyond_unicode_is_refused(void **state)
{
	(void)state;
	assert_int_equal(bytes_of("\xf4\x90\x80\x80"), 0);
	assert_int_equal(bytes_of("\xf5\x80\x80\x80"), 0);
	assert_int_equal(bytes_of("\xff"), 0);
	assert_int_equal(bytes_of("\x80"), 0);
}

static void a_cut_character_differs_from_a_bad_one(void **state)
{
	(void)state;
	assert_int_equal(torsh_utf8_bytes("\xe2\x82\xac", 2), 0);
	assert_true(torsh_utf8_is_cut("\xe2\x82\xac", 2));
	assert_true(torsh_utf8_is_cut("\xf0\x9f\x98\x80", 3));
	assert_false(torsh_utf8_is_cut("\xe2\x82\xac", 3));
	assert_false(torsh_utf8_is_cut("\xe0\x80", 2));
	assert_false(torsh_utf8_is_cut("\xed\xa0", 2));
	assert_false(torsh_utf8_is_cut("\xff", 1));
}

static void a_character_has_its_number(void **state)
{
	(void)state;
	assert_int_equal(torsh_utf8_character("\x41", 1), 0x41);
	assert_int_equal(torsh_utf8_character("\xc3\xa9", 2), 0xe9);
	assert_int_equal(torsh_utf8_character("\xe2\x82\xac", 3), 0x20ac);
	assert_int_equal(torsh_utf8_character("\xf0\x9f\x98\x80", 4), 0x1f600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(characters_of_each_length_are_taken),
		cmocka_unit_test(overlong_forms_are_refused),
		cmocka_unit_test(surrogates_are_refused),
		cmocka_unit_test(what_lies_beyond_unicode_is_refused),
		cmocka_unit_test(a_cut_character_differs_from_a_bad_one),
		cmocka_unit_test(a_character_has_its_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
