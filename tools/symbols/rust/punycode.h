/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Punycode (RFC 3492) as in Rust's symbols: "_" replaces "-" before the digits. */
#ifndef TORSH_SYMBOLS_RUST_PUNYCODE_H
#define TORSH_SYMBOLS_RUST_PUNYCODE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Decode text to UTF-8, terminated by 0, in out. Returns false if it is not Punycode or doesn't
 * fit.
 */
bool torsh_punycode_decode(const char *text, size_t n, char *out, size_t room);

#endif
