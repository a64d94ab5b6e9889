/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Demangles the names of Rust's symbols: v0 ("_R...", RFC 2603) and the legacy form
 * ("_ZN...17h<hash>E", which C++'s demangler mistakes for its own). Hashes and crate
 * disambiguators are left out.
 */
#ifndef TORSH_SYMBOLS_RUST_RUST_H
#define TORSH_SYMBOLS_RUST_RUST_H

/*
 * Returns the name as Rust writes it, or NULL if the symbol has neither form. The caller frees it.
 */
char *torsh_rust_demangle(const char *symbol);

#endif
