/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/torch/torch_number.h"

#include <stdbool.h>
#include <stdlib.h>

#include "agent/process/text_buffer.h"

#define MOST_DIGITS 17 /* these distinguish any two doubles */
#define FIRST_LARGE 16 /* from 10^16 on, and below 10^-4, with an exponent */
#define LAST_SMALL (-5)

void torsh_torch_put_integer(struct text *text, int64_t number)
{
	if (number < 0)
		torsh_text_put(text, "-");
	torsh_text_put_number(text, number < 0 ? -(uint64_t)number : (uint64_t)number);
}

/* x * 10^exponent, rounded a few times at 64 bits or more, which is exact enough for a double. */
static long double scale(long double x, int exponent)
{
	static const long double powers[] = {1e1L,  1e2L,  1e4L,   1e8L,  1e16L,
					     1e32L, 1e64L, 1e128L, 1e256L};
	unsigned left = exponent < 0 ? (unsigned)-exponent : (unsigned)exponent;

	for (int i = 0; left && i < 9; i++, left >>= 1) {
		if (left & 1)
			x = exponent < 0 ? x / powers[i] : x * powers[i];
	}
	return x;
}

/* The exponent of the first digit. */
static int exponent_of(long double x)
{
	int low = -324, high = 308;

	while (low < high) {
		int middle = low + (high - low + 1) / 2;

		if (x >= scale(1, middle))
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/*
 * Whether digits * 10^exponent is parsed as x. A text without a point is the same in every locale.
 */
static bool is_read_as(uint64_t digits, int exponent, double x)
{
	char buffer[40] = "";
	struct text text = TEXT_IN(buffer);

	torsh_text_put_number(&text, digits);
	torsh_text_put(&text, "e");
	torsh_torch_put_integer(&text, exponent);
	return strtod(buffer, NULL) == x;
}

static uint64_t power_of_ten(int n)
{
	uint64_t power = 1;

	while (n-- > 0)
		power *= 10;
	return power;
}

/* x = digits * 10^(exponent - n + 1), with n digits, the fewest that yield x. */
static int shortest(double x, uint64_t *digits, int *exponent)
{
	int first = exponent_of(x);

	for (int n = 1;; n++) {
		uint64_t rounded = (uint64_t)(scale(x, n - 1 - first) + 0.5L);
		int up = rounded >= power_of_ten(n);

		*exponent = first + up;
		*digits = up ? rounded / 10 : rounded;
		if (is_read_as(*digits, *exponent - n + 1, x))
			return n;
		/* The rounding of scale may change the last digit. */
		for (int off = -1; n == MOST_DIGITS && off <= 1; off += 2) {
			*digits = rounded + (uint64_t)(int64_t)off;
			if (is_read_as(*digits, first - n + 1, x))
				return n;
		}
		if (n == MOST_DIGITS)
			return n;
	}
}

static void put_zeros(struct text *text, int n)
{
	while (n-- > 0)
		torsh_text_put(text, "0");
}

static void put_exponent(struct text *text, int exponent)
{
	torsh_text_put(text, exponent < 0 ? "e-" : "e+");
	exponent = exponent < 0 ? -exponent : exponent;
	put_zeros(text, exponent < 10);
	torsh_text_put_number(text, (uint64_t)exponent);
}

/* The n digits with a point after the first `before`. */
static void put_digits(struct text *text, uint64_t digits, int n, int before)
{
	char figures[MOST_DIGITS] = {0};

	for (int i = n; i-- > 0; digits /= 10)
		figures[i] = (char)('0' + digits % 10);
	if (before <= 0) {
		torsh_text_put(text, "0.");
		put_zeros(text, -before);
		torsh_text_put_bytes(text, figures, (size_t)n);
	} else if (before >= n) {
		torsh_text_put_bytes(text, figures, (size_t)n);
		put_zeros(text, before - n);
		torsh_text_put(text, ".0");
	} else {
		torsh_text_put_bytes(text, figures, (size_t)before);
		torsh_text_put(text, ".");
		torsh_text_put_bytes(text, figures + before, (size_t)(n - before));
	}
}

void torsh_torch_put_double(struct text *text, double number)
{
	uint64_t digits;
	int exponent, n;

	if (number != number) {
		torsh_text_put(text, "nan");
		return;
	}
	if (__builtin_signbit(number)) {
		torsh_text_put(text, "-");
		number = -number;
	}
	if (number == 0) {
		torsh_text_put(text, "0.0");
	} else if (number > __DBL_MAX__) {
		torsh_text_put(text, "inf");
	} else {
		n = shortest(number, &digits, &exponent);
		if (exponent <= LAST_SMALL || exponent >= FIRST_LARGE) {
			/* 1e-08, 1.5e-08 */
			if (n == 1)
				torsh_text_put_number(text, digits);
			else
				put_digits(text, digits, n, 1);
			put_exponent(text, exponent);
		} else {
			put_digits(text, digits, n, exponent + 1);
		}
	}
}
