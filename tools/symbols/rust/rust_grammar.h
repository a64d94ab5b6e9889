/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The mutually recursive rules of Rust's v0 symbols (RFC 2603). Each reads and prints. */
#ifndef TORSH_SYMBOLS_RUST_RUST_GRAMMAR_H
#define TORSH_SYMBOLS_RUST_RUST_GRAMMAR_H

#include "tools/symbols/rust/rust_reader.h"

/* Read a path. in_value: print generic arguments as in an expression, with "::<". */
void torsh_rust_read_path(struct rust_reader *reader, bool in_value);

/* Read a type; defined in rust_type.c. */
void torsh_rust_read_type(struct rust_reader *reader);

/* Read a constant. */
void torsh_rust_read_constant(struct rust_reader *reader);
/* Read a lifetime, a constant or a type. */
void torsh_rust_read_argument(struct rust_reader *reader);

#endif
