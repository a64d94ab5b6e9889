/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * SipHash-2-4 with 64 bits, a message authentication code for short messages: Aumasson and
 * Bernstein, "SipHash: a fast short-input PRF" (INDOCRYPT 2012). None of the libraries that the
 * writer is linked with has a keyed code, and a library for these lines would be one more to
 * install on every host.
 */
#ifndef TORSH_WRITER_CLOCKS_SIPHASH_H
#define TORSH_WRITER_CLOCKS_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct siphash_key {
	uint64_t words[2];
};

/* Returns the code of n bytes. */
uint64_t torsh_siphash(const struct siphash_key *key, const void *bytes, size_t n);

/* Returns a key that follows from a text; who doesn't know the text can't know the key. */
struct siphash_key torsh_siphash_key_of(const void *text, size_t n);

#endif
