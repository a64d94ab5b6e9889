/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Decimal digits without printf, for output by the million. */
#ifndef TORSH_BASE_DIGITS_H
#define TORSH_BASE_DIGITS_H

#include <stdint.h>

#define DIGITS_MAX 20 /* of the largest number */
#define DIGITS_US_MAX (DIGITS_MAX + 1) /* of the longest time */

/* Write the digits of a number at `at`, which has room for DIGITS_MAX. Returns their end. */
char *torsh_digits(char *at, uint64_t number);

/*
 * Write a time in ns as microseconds with three decimals; `at` has room for DIGITS_US_MAX. Returns
 * the end.
 */
char *torsh_digits_us(char *at, uint64_t ns);

#endif
