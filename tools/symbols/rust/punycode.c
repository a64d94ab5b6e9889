/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Decoder for Punycode; the constants and the order of steps are from RFC 3492, sections 5 and 6.
 */
#include "tools/symbols/rust/punycode.h"

#include <stdint.h>
#include <string.h>

enum {
	BASE = 36,
	T_MIN = 1,
	T_MAX = 26,
	SKEW = 38,
	DAMP = 700,
	INITIAL_BIAS = 72,
	INITIAL_N = 128
};

#define POINTS_MAX 256u

static uint32_t adapt(uint32_t delta, uint32_t n_points, bool is_first)
{
	uint32_t k = 0;

	delta /= is_first ? DAMP : 2;
	delta += delta / n_points;
	for (; delta > ((BASE - T_MIN) * T_MAX) / 2; k += BASE)
		delta /= BASE - T_MIN;
	return k + (BASE - T_MIN + 1) * delta / (delta + SKEW);
}

/* Returns the value of a digit, or BASE for another character. */
static uint32_t digit_of(char c)
{
	if (c >= 'a' && c <= 'z')
		return (uint32_t)(c - 'a');
	return c >= '0' && c <= '9' ? (uint32_t)(c - '0') + 26 : BASE;
}

/* Read a number of variable length. Returns false if it is incomplete or too large. */
static bool read_delta(const char **at, const char *end, uint32_t bias, uint32_t *i)
{
	uint32_t weight = 1;

	for (uint32_t k = BASE;; k += BASE) {
		uint32_t digit = *at < end ? digit_of(*(*at)++) : BASE, part;
		uint32_t threshold = k <= bias ? T_MIN : k >= bias + T_MAX ? T_MAX : k - bias;

		if (digit == BASE || __builtin_mul_overflow(digit, weight, &part) ||
		    __builtin_add_overflow(*i, part, i))
			return false;
		if (digit < threshold)
			return true;
		if (__builtin_mul_overflow(weight, BASE - threshold, &weight))
			return false;
	}
}

/*
 * agent/python has the same function; the tools can't share it, because they include only
 * agent/wire.
 */
static size_t put_utf8(uint32_t point, char *out)
{
	if (point < 0x80) {
		out[0] = (char)point;
		return 1;
	}
	if (point < 0x800) {
		out[0] = (char)(0xc0 | point >> 6);
		out[1] = (char)(0x80 | (point & 0x3f));
		return 2;
	}
	if (point < 0x10000) {
		out[0] = (char)(0xe0 | point >> 12);
		out[1] = (char)(0x80 | (point >> 6 & 0x3f));
		out[2] = (char)(0x80 | (point & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | point >> 18);
	out[1] = (char)(0x80 | (point >> 12 & 0x3f));
	out[2] = (char)(0x80 | (point >> 6 & 0x3f));
	out[3] = (char)(0x80 | (point & 0x3f));
	return 4;
}

static bool encode(const uint32_t *points, size_t n_points, char *out, size_t room)
{
	size_t n = 0;

	for (size_t i = 0; i < n_points; i++) {
		if (n + 5 > room)
			return false;
		n += put_utf8(points[i], out + n);
	}
	if (n == room)
		return false;
	out[n] = '\0';
	return true;
}

bool torsh_punycode_decode(const char *text, size_t n, char *out, size_t room)
{
	uint32_t points[POINTS_MAX], point = INITIAL_N, i = 0, bias = INITIAL_BIAS;
	const char *at = text, *end = text + n, *last = n ? memrchr(text, '_', n) : NULL;
	size_t n_points = 0;

	for (; last && at < last; at++) {
		if (n_points == POINTS_MAX)
			return false;
		points[n_points++] = (unsigned char)*at;
	}
	if (last)
		at = last + 1;
	while (at < end) {
		uint32_t old = i;

		if (n_points == POINTS_MAX || !read_delta(&at, end, bias, &i))
			return false;
		n_points++;
		bias = adapt(i - old, (uint32_t)n_points, old == 0);
		/* Surrogates of UTF-16 are not characters. */
		if (__builtin_add_overflow(point, i / n_points, &point) || point > 0x10ffff ||
		    (point >> 11) == 0x1b)
			return false;
		i %= (uint32_t)n_points;
		memmove(points + i + 1, points + i, (n_points - 1 - i) * sizeof(*points));
		points[i++] = point;
	}
	return encode(points, n_points, out, room);
}
