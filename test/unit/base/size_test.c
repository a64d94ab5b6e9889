/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Sizes as people write and read them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/base/size.h"

static void sizes_may_have_a_unit(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} sizes[] = {
		{"0", 0},	    {"4096", 4096},
		{"10K", 10240},	    {"10k", 10240},
		{"5M", 5u << 20},   {"1G", 1u << 30},
		{"1.5G", 3u << 29}, {"2TiB", UINT64_C(2) << 40},
		{"100 kB", 102400}, {"12B", 12},
		{" 7 ", 7},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint64_t bytes = 99;

		assert_int_equal(torsh_size_parse(sizes[i].text, &bytes), 0);
		assert_int_equal(bytes, sizes[i].bytes);
	}
}

static void what_is_no_size_is_refused(void **state)
{
	static const char *const texts[] = {"",	     "K",	 "-1",	"1X",  "10KK", "0x10",
					    "1e400", "9999999T", "nan", "1K2", "+5"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		uint64_t bytes;

		assert_int_equal(torsh_size_parse(texts[i], &bytes), -EINVAL);
	}
}

static void times_are_parsed(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} times[] = {
		{"0", 0},	    {"250", 250},	{"250 ns", 250},	{"1.5us", 1500},
		{"20MS", 20000000}, {".5s", 500000000}, {"2 min", 120000000000}};
	static const char *const wrong[] = {"", "s", "-1s", "1h", "1 s s", "0x1s", "nan", "1e30s"};
	uint64_t ns;

	(void)state;
	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		assert_int_equal(torsh_duration_parse(times[i].text, &ns), 0);
		assert_int_equal(ns, times[i].ns);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(torsh_duration_parse(wrong[i], &ns), -EINVAL);
}

static void numbers_are_readable(void **state)
{
	char out[SIZE_TEXT_BYTES];

	(void)state;
	assert_string_equal(torsh_size_human(512, out), "512 B");
	assert_string_equal(torsh_size_human(12800, out), "12.5 KiB");
	assert_string_equal(torsh_size_human(UINT64_C(1) << 30, out), "1.00 GiB");
	assert_string_equal(torsh_size_human(1048575, out), "1.00 MiB");
	assert_string_equal(torsh_size_human(UINT64_MAX, out), "16.0 EiB");
	assert_string_equal(torsh_size_grouped(0, out), "0");
	assert_string_equal(torsh_size_grouped(999, out), "999");
	assert_string_equal(torsh_size_grouped(12345678, out), "12,345,678");
	assert_string_equal(torsh_size_grouped(UINT64_MAX, out), "18,446,744,073,709,551,615");
	assert_string_equal(torsh_size_exact(1, out), "1 byte");
	assert_string_equal(torsh_size_exact(12800, out), "12.5 KiB (12,800 bytes)");
	assert_string_equal(torsh_size_duration(1234000000, out), "1.234 s");
	assert_string_equal(torsh_size_duration(12300000, out), "12.3 ms");
	assert_string_equal(torsh_size_duration(999400000, out), "999 ms");
	assert_string_equal(torsh_size_duration(999998000, out), "1.000 s");
	assert_string_equal(torsh_size_duration(999900, out), "1 ms");
	assert_string_equal(torsh_size_duration(UINT64_C(192000000000), out), "3 min 12 s");
}

static void counts_have_the_right_plural(void **state)
{
	char out[SIZE_TEXT_BYTES];

	(void)state;
	assert_string_equal(torsh_size_counted(1, "step", out), "1 step");
	assert_string_equal(torsh_size_counted(0, "step", out), "0 steps");
	assert_string_equal(torsh_size_counted(12345, "block", out), "12,345 blocks");
	assert_string_equal(torsh_size_counted(1, "process", out), "1 process");
	assert_string_equal(torsh_size_counted(2, "process", out), "2 processes");
	assert_string_equal(torsh_size_counted(2, "batch", out), "2 batches");
	assert_string_equal(torsh_size_counted(2, "entry", out), "2 entries");
	assert_string_equal(torsh_size_counted(2, "key", out), "2 keys");
}

static void shares_below_a_tenth_of_a_percent_are_not_nothing(void **state)
{
	char text[SIZE_TEXT_BYTES];

	(void)state;
	assert_string_equal(torsh_size_percent(1, 3, text), "33.3%");
	assert_string_equal(torsh_size_percent(1, 1000, text), "0.1%");
	assert_string_equal(torsh_size_percent(1, 1001, text), "<0.1%");
	assert_string_equal(torsh_size_percent(0, 1000, text), "0.0%");
	assert_string_equal(torsh_size_percent(1, 0, text), "0.0%");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_may_have_a_unit),
		cmocka_unit_test(what_is_no_size_is_refused),
		cmocka_unit_test(times_are_parsed),
		cmocka_unit_test(numbers_are_readable),
		cmocka_unit_test(counts_have_the_right_plural),
		cmocka_unit_test(shares_below_a_tenth_of_a_percent_are_not_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
