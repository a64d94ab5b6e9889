/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The UTF-8 validator of all tools: which bytes are a character (Unicode's table 3-7: no overlong
 * forms, no surrogates), and which characters a terminal acts on.
 */
#ifndef TORSH_BASE_UTF8_H
#define TORSH_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Returns the length in bytes of the character at text, with n bytes available; 0 if it is invalid
 * or incomplete. A NUL is a character.
 */
size_t torsh_utf8_bytes(const char *text, size_t n);

/* Returns true if more bytes could complete the n bytes at text to a character. */
bool torsh_utf8_is_cut(const char *text, size_t n);

/* Decode the character of n bytes at text. */
uint32_t torsh_utf8_character(const char *text, size_t n_bytes);

/*
 * Returns true if a terminal acts on this character instead of showing it: the controls of C0 and
 * C1, and those that change the text direction. Line feed and tab do not count.
 */
bool torsh_utf8_is_obeyed(uint32_t character);

/* Returns a copy with U+FFFD for each byte that is not part of a character; the caller frees it. */
char *torsh_utf8_clean(const char *text);

#endif
