/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Numbers in Python's notation, without the C library's formatted output, which may allocate and
 * depends on the locale.
 */
#ifndef TORSH_COLLECTORS_TORCH_TORCH_NUMBER_H
#define TORSH_COLLECTORS_TORCH_TORCH_NUMBER_H

#include <stdint.h>

struct text;

/* Append an integer in decimal. Any thread. */
void torsh_torch_put_integer(struct text *text, int64_t number);

/*
 * Append the fewest digits that identify this number, or one more in a few cases; always with a
 * '.', an 'e', "inf" or "nan". Any thread.
 */
void torsh_torch_put_double(struct text *text, double number);

#endif
