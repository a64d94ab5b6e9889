/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Doubles as texts: each has to come back as itself, by hardly more digits than printf needs for
 * that.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/process/text_buffer.h"
#include "collectors/torch/torch_number.h"
#include "test/unit/fixtures/random.h"

static char written[64];

static const char *write_double(double number)
{
	struct text text = TEXT_IN(written);

	written[0] = '\0';
	torsh_torch_put_double(&text, number);
	assert_false(text.is_cut);
	return written;
}

static void published_numbers(void **state)
{
	(void)state;
	assert_string_equal(write_double(0.0), "0.0");
	assert_string_equal(write_double(-0.0), "-0.0");
	assert_string_equal(write_double(1), "1.0");
	assert_string_equal(write_double(-2.5), "-2.5");
	assert_string_equal(write_double(0.1), "0.1");
	assert_string_equal(write_double(0.001), "0.001");
	assert_string_equal(write_double(1e-4), "0.0001");
	assert_string_equal(write_double(1e-5), "1e-05");
	assert_string_equal(write_double(1.5e-8), "1.5e-08");
	assert_string_equal(write_double(123456789.0), "123456789.0");
	assert_string_equal(write_double(1e15), "1000000000000000.0");
	assert_string_equal(write_double(1e16), "1e+16");
	assert_string_equal(write_double(1e300), "1e+300");
	assert_string_equal(write_double(0.99999999999999989), "0.9999999999999999");
	assert_string_equal(write_double(__builtin_inf()), "inf");
	assert_string_equal(write_double(-__builtin_inf()), "-inf");
	assert_string_equal(write_double(__builtin_nan("")), "nan");
}

static int digits_of(const char *text)
{
	int n = 0, is_begun = 0;

	for (; *text && *text != 'e'; text++) {
		is_begun |= *text >= '1' && *text <= '9';
		n += is_begun && *text >= '0' && *text <= '9';
	}
	return n;
}

/* Numbers as programs have them: few digits, and the results of divisions. */
static void numbers_come_back(void **state)
{
	uint64_t random = 7;
	char shortest[64];

	(void)state;
	for (int i = 0; i < 100000; i++) {
		double number = (double)(random_next(&random) % 100000 + 1) /
				(double)(random_next(&random) % 100000 + 1);
		int n = 1;

		do
			snprintf(shortest, sizeof(shortest), "%.*e", n++ - 1, number);
		while (strtod(shortest, NULL) != number);
		write_double(number);
		assert_true(strtod(written, NULL) == number);
		if (!strchr(written, 'e') && !strstr(written, ".0"))
			assert_in_range(digits_of(written), 1, digits_of(shortest) + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(published_numbers),
		cmocka_unit_test(numbers_come_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
