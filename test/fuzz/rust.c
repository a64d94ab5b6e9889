/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Rust symbol names from an untrusted object; and Punycode by itself, with as much room as the
 * first byte allows.
 */
#include "tools/symbols/rust/rust.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/symbols/rust/punycode.h"

#define NAME_MAX_BYTES (1u << 20) /* far above what any name may become */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

/* Punycode encodes characters; surrogates of UTF-16 are none, and are not valid UTF-8. */
static void check_utf8(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)text[0] == 0xed && (unsigned char)text[1] >= 0xa0)
			abort();
	}
}

static void decode(const uint8_t *bytes, size_t n_bytes)
{
	size_t room = bytes[0];
	char *out = malloc(room ? room : 1);

	if (!out)
		abort();
	if (torsh_punycode_decode((const char *)bytes + 1, n_bytes - 1, out, room)) {
		if (strnlen(out, room) == room)
			abort();
		check_utf8(out);
	}
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	char *symbol = strndup((const char *)bytes, n_bytes), *name;

	if (!symbol)
		abort();
	name = torsh_rust_demangle(symbol);
	if (name && strlen(name) > NAME_MAX_BYTES)
		abort();
	free(name);
	free(symbol);
	if (n_bytes)
		decode(bytes, n_bytes);
	return 0;
}
