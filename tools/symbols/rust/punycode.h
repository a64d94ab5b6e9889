/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Punycode (RFC 3492), as Rust's symbols have it: "_" in place of "-" before the digits. */
#ifndef TORSH_SYMBOLS_RUST_PUNYCODE_H
#define TORSH_SYMBOLS_RUST_PUNYCODE_H

#include <stdbool.h>
#include <stddef.h>

/* The text in UTF-8, ended by 0, in out. False where it is no Punycode, or doesn't fit. */
bool torsh_punycode_decode(const char *text, size_t n, char *out, size_t room);

#endif
