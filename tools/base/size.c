/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/size.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char units[] = "KMGTPE";

/* Returns the power of 1024 that the unit after the digits stands for, or -1. */
static int parse_unit(const char *text)
{
	const char *unit;
	int power = 0;

	while (isspace((unsigned char)*text))
		text++;
	if (!*text || strcasecmp(text, "b") == 0 || strcasecmp(text, "bytes") == 0)
		return 0;
	unit = strchr(units, toupper((unsigned char)*text));
	if (!unit || !*unit)
		return -1;
	power = (int)(unit - units) + 1;
	text++;
	if (*text == 'i' || *text == 'I')
		text++;
	if (*text == 'b' || *text == 'B')
		text++;
	return *text ? -1 : power;
}

/*
 * Returns a number of zero or more; *end is the first character after it, or text if there is
 * none.
 */
static long double parse_number(const char *text, char **end)
{
	const char *digits = text;

	while (isspace((unsigned char)*digits))
		digits++;
	*end = (char *)text;
	if ((!isdigit((unsigned char)*digits) && *digits != '.') ||
	    strncasecmp(digits, "0x", 2) == 0)
		return 0;
	return strtold(digits, end);
}

static int take_number(long double value, uint64_t *number)
{
	if (!(value < 9223372036854775808.0L))
		return -EINVAL;
	*number = (uint64_t)value;
	return 0;
}

int torsh_size_parse(const char *text, uint64_t *bytes)
{
	char *end;
	long double value = parse_number(text, &end);
	int power = parse_unit(end);

	if (end == text || power < 0)
		return -EINVAL;
	for (int i = 0; i < power; i++)
		value *= 1024;
	return take_number(value, bytes);
}

int torsh_duration_parse(const char *text, uint64_t *ns)
{
	static const struct {
		const char *name;
		long double ns;
	} times[] = {{"", 1}, {"ns", 1}, {"us", 1e3L}, {"ms", 1e6L}, {"s", 1e9L}, {"min", 60e9L}};
	char *end;
	long double value = parse_number(text, &end);

	if (end == text)
		return -EINVAL;
	while (isspace((unsigned char)*end))
		end++;
	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		if (strcasecmp(end, times[i].name) == 0)
			return take_number(value * times[i].ns, ns);
	}
	return -EINVAL;
}

/* Writes three digits and the letter of a power of base; number is at least base. */
static const char *put_scaled(uint64_t number, unsigned base, const char *letters,
			      const char *suffix, char *out)
{
	double value = (double)number;
	int power = 0;

	while (value >= base - 0.5 && letters[power]) {
		value /= base;
		power++;
	}
	snprintf(out, SIZE_TEXT_BYTES, "%.*f %c%s",
		 value < 9.995	 ? 2
		 : value < 99.95 ? 1
				 : 0,
		 value, letters[power - 1], suffix);
	return out;
}

const char *torsh_size_human(uint64_t bytes, char *out)
{
	if (bytes >= 1024)
		return put_scaled(bytes, 1024, units, "iB", out);
	snprintf(out, SIZE_TEXT_BYTES, "%" PRIu64 " B", bytes);
	return out;
}

const char *torsh_size_si(uint64_t number, char *out)
{
	if (number >= 1000)
		return put_scaled(number, 1000, "kMGTPE", "", out);
	snprintf(out, SIZE_TEXT_BYTES, "%" PRIu64, number);
	return out;
}

const char *torsh_size_grouped(uint64_t number, char *out)
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, number);
	char *to = out;

	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return out;
}

/* Returns the plural's ending; *n_cut is the number of letters that it replaces. */
static const char *plural_of(const char *noun, size_t *n_cut)
{
	size_t n = strlen(noun);
	char last = n ? noun[n - 1] : '\0', before = n > 1 ? noun[n - 2] : '\0';

	*n_cut = 0;
	if (last == 's' || last == 'x' || (last == 'h' && (before == 'c' || before == 's')))
		return "es";
	if (last != 'y' || strchr("aeiou", before))
		return "s";
	*n_cut = 1;
	return "ies";
}

const char *torsh_size_counted(uint64_t number, const char *noun, char *out)
{
	char grouped[SIZE_TEXT_BYTES];
	size_t n_cut = 0;
	const char *plural = number == 1 ? "" : plural_of(noun, &n_cut);

	snprintf(out, SIZE_TEXT_BYTES, "%.26s %.*s%s", torsh_size_grouped(number, grouped),
		 (int)(strlen(noun) - n_cut), noun, plural);
	return out;
}

const char *torsh_size_exact(uint64_t bytes, char *out)
{
	char human[SIZE_TEXT_BYTES], grouped[SIZE_TEXT_BYTES];

	if (bytes < 1024)
		snprintf(out, SIZE_TEXT_BYTES, "%" PRIu64 " byte%s", bytes, bytes == 1 ? "" : "s");
	else
		snprintf(out, SIZE_TEXT_BYTES, "%.12s (%.26s bytes)",
			 torsh_size_human(bytes, human), torsh_size_grouped(bytes, grouped));
	return out;
}

const char *torsh_size_percent(double part, double whole, char *out)
{
	double percent = whole > 0 ? 100 * part / whole : 0;

	if (percent > 0 && percent < 0.1)
		snprintf(out, SIZE_TEXT_BYTES, "<0.1%%");
	else
		snprintf(out, SIZE_TEXT_BYTES, "%.1f%%", percent);
	return out;
}

const char *torsh_size_duration(uint64_t ns, char *out)
{
	if (ns < 1000)
		snprintf(out, SIZE_TEXT_BYTES, "%" PRIu64 " ns", ns);
	else if (ns < 999500) /* from there on three digits make 1e+03 of it */
		snprintf(out, SIZE_TEXT_BYTES, "%.3g µs", (double)ns / 1e3);
	else if (ns < 999500000)
		snprintf(out, SIZE_TEXT_BYTES, "%.3g ms", (double)ns / 1e6);
	else if (ns < UINT64_C(120000000000))
		snprintf(out, SIZE_TEXT_BYTES, "%.3f s", (double)ns / 1e9);
	else
		snprintf(out, SIZE_TEXT_BYTES, "%" PRIu64 " min %" PRIu64 " s",
			 ns / UINT64_C(60000000000), ns / UINT64_C(1000000000) % 60);
	return out;
}
