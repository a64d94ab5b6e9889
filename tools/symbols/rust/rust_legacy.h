/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The names of Rust's symbols by default until 2025: C++'s form, with words for what C++ can't
 * express.
 */
#ifndef TORSH_SYMBOLS_RUST_RUST_LEGACY_H
#define TORSH_SYMBOLS_RUST_RUST_LEGACY_H

/*
 * Returns the name, without its hash, from what follows "_ZN"; NULL if it doesn't end with a hash,
 * and so is C++'s. The caller frees it.
 */
char *torsh_rust_demangle_legacy(const char *symbol);

#endif
