/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The one UTF-8 validator: what a character is (Unicode's table 3-7: no overlong forms, no
 * surrogates), and which ones a terminal obeys.
 */
#ifndef TORSH_BASE_UTF8_H
#define TORSH_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Bytes of the character at text, of which n bytes are there; 0 where there is none, or not all of
 * it. A NUL is one.
 */
size_t torsh_utf8_bytes(const char *text, size_t n);

/* Might the n bytes at text, which begin as a character does, be made one by more bytes? */
bool torsh_utf8_is_cut(const char *text, size_t n);

/* The character of so many bytes at text. */
uint32_t torsh_utf8_character(const char *text, size_t n_bytes);

/*
 * Does a terminal act on this character instead of showing it: the controls of C0 and C1, and those
 * that turn the direction of what follows? Line feed and tab do not count.
 */
bool torsh_utf8_is_obeyed(uint32_t character);

#endif
