/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Names that Rust's compiler gave symbols: v0 ("_R...", RFC 2603) and the legacy form
 * ("_ZN...17h<hash>E", which C++'s demangler takes for its own). Hashes and crate disambiguators
 * are left out.
 */
#ifndef TORSH_SYMBOLS_RUST_RUST_H
#define TORSH_SYMBOLS_RUST_RUST_H

/* The name as Rust writes it, or NULL where the symbol is neither. The caller frees it. */
char *torsh_rust_demangle(const char *symbol);

#endif
