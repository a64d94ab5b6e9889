/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/process/values/value.h"

#include <string.h>

int torsh_value_digits(const char *digits, size_t length, uint64_t *number)
{
	uint64_t n = 0;

	if (!length)
		return -1;
	for (size_t i = 0; i < length; i++)
		if (digits[i] < '0' || digits[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(digits[i] - '0'), &n))
			return -1;
	*number = n;
	return 0;
}

int torsh_value_number(const char *value, uint64_t *number)
{
	return torsh_value_digits(value, strlen(value), number);
}

int torsh_value_size(const char *value, uint64_t *bytes)
{
	static const char units[] = "KMGT";
	char digits[32];
	size_t length = strlen(value);
	const char *unit;
	uint64_t n;

	if (length > 1 && (value[length - 1] == 'B' || value[length - 1] == 'b'))
		length--;
	if (length == 0 || length >= sizeof(digits))
		return -1;
	memcpy(digits, value, length);
	digits[length] = '\0';
	unit = strchr(units, digits[length - 1] & ~0x20);
	if (unit)
		digits[length - 1] = '\0';
	if (torsh_value_number(digits, &n))
		return -1;
	for (long shift = unit ? unit - units + 1 : 0; shift > 0; shift--)
		if (__builtin_mul_overflow(n, 1024, &n))
			return -1;
	*bytes = n;
	return 0;
}

int torsh_value_time(const char *value, uint64_t least_ns, uint64_t most_ns, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"ms", 1000000},
		     {"s", 1000000000},
		     {"", 1000000000},
		     {"m", 60000000000},
		     {"h", 3600000000000}};
	size_t n_digits = strspn(value, "0123456789");
	uint64_t number, time_ns;

	if (torsh_value_digits(value, n_digits, &number))
		return -1;
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(value + n_digits, units[i].name) &&
		    !__builtin_mul_overflow(number, units[i].ns, &time_ns) && time_ns >= least_ns &&
		    time_ns <= most_ns) {
			*ns = time_ns;
			return 0;
		}
	return -1;
}
