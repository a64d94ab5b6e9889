/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The names that Rust's compiler gave symbols by default until 2025: C++'s form, with words for
 * what C++ can't express.
 */
#ifndef TORSH_SYMBOLS_RUST_RUST_LEGACY_H
#define TORSH_SYMBOLS_RUST_RUST_LEGACY_H

/*
 * The name, without its hash, of what follows "_ZN"; NULL where it doesn't end with a hash: C++'s.
 * The caller frees it.
 */
char *torsh_rust_demangle_legacy(const char *symbol);

#endif
