/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/digits.h"

#include <string.h>

static const char pairs[] = "00010203040506070809101112131415161718192021222324"
			    "25262728293031323334353637383940414243444546474849"
			    "50515253545556575859606162636465666768697071727374"
			    "75767778798081828384858687888990919293949596979899";

static unsigned count_digits(uint64_t number)
{
	static const uint64_t powers[DIGITS_MAX] = {
		UINT64_C(1),
		UINT64_C(10),
		UINT64_C(100),
		UINT64_C(1000),
		UINT64_C(10000),
		UINT64_C(100000),
		UINT64_C(1000000),
		UINT64_C(10000000),
		UINT64_C(100000000),
		UINT64_C(1000000000),
		UINT64_C(10000000000),
		UINT64_C(100000000000),
		UINT64_C(1000000000000),
		UINT64_C(10000000000000),
		UINT64_C(100000000000000),
		UINT64_C(1000000000000000),
		UINT64_C(10000000000000000),
		UINT64_C(100000000000000000),
		UINT64_C(1000000000000000000),
		UINT64_C(10000000000000000000),
	};
	/*
	 * 1233/4096 approximates log10(2) to four digits: the quotient is the number of digits, or
	 * one too many.
	 */
	unsigned n_bits = 64 - (unsigned)__builtin_clzll(number | 1), n = n_bits * 1233 >> 12;

	return n + (number >= powers[n] || !number);
}

char *torsh_digits(char *at, uint64_t number)
{
	char *end = at + count_digits(number), *to = end;

	for (; number >= 100; number /= 100) {
		to -= 2;
		memcpy(to, pairs + number % 100 * 2, 2);
	}
	if (number >= 10)
		memcpy(to - 2, pairs + number * 2, 2);
	else
		to[-1] = (char)('0' + number);
	return end;
}

char *torsh_digits_us(char *at, uint64_t ns)
{
	uint64_t rest = ns % 1000;

	at = torsh_digits(at, ns / 1000);
	*at++ = '.';
	*at++ = (char)('0' + rest / 100);
	memcpy(at, pairs + rest % 100 * 2, 2);
	return at + 2;
}
