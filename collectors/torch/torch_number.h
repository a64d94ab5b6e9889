/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Numbers as Python writes them, without the C library's formatted output: that may allocate, and
 * obeys the locale.
 */
#ifndef TORSH_COLLECTORS_TORCH_TORCH_NUMBER_H
#define TORSH_COLLECTORS_TORCH_TORCH_NUMBER_H

#include <stdint.h>

struct text;

void torsh_torch_put_integer(struct text *text, int64_t number);

/*
 * The fewest digits that are this number and no other, or one more in some few cases; always with a
 * '.', an 'e', "inf" or "nan".
 */
void torsh_torch_put_double(struct text *text, double number);

#endif
