/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which memory begins with jemalloc's tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tools/writer/reachability/jemalloc_maps.h"

#define MIB (UINT64_C(1) << 20)
#define AT (UINT64_C(0x7f0000000000))

static const struct memory_area area = {.begin = AT - MIB, .end = AT + 8 * MIB};

/* Tables of 4 MiB, of which 3 KiB are in use. */
static const uint64_t good[N_JEMALLOC_WORDS] = {
	[JEMALLOC_BLOCK_BYTES] = 4 * MIB,	[JEMALLOC_NEXT_BLOCK] = AT - 64 * MIB,
	[JEMALLOC_FREE_BITS] = 0x1234,		[JEMALLOC_FREE_AT] = AT + 3072,
	[JEMALLOC_FREE_BYTES] = 4 * MIB - 3072,
};

static void tables_are_known_by_their_first_words(void **state)
{
	uint64_t full[N_JEMALLOC_WORDS], last[N_JEMALLOC_WORDS];

	(void)state;
	assert_true(torsh_jemalloc_is_base(&area, AT, good));
	memcpy(full, good, sizeof(full));
	full[JEMALLOC_FREE_AT] = AT + 4 * MIB;
	full[JEMALLOC_FREE_BYTES] = 0;
	assert_true(torsh_jemalloc_is_base(&area, AT, full));
	memcpy(last, good, sizeof(last));
	last[JEMALLOC_NEXT_BLOCK] = 0;
	assert_true(torsh_jemalloc_is_base(&area, AT, last));
}

static void other_words_are_none(void **state)
{
	static const struct {
		enum jemalloc_word word;
		uint64_t value;
	} others[] = {
		{JEMALLOC_BLOCK_BYTES, 0},	  {JEMALLOC_BLOCK_BYTES, 3 * MIB},
		{JEMALLOC_BLOCK_BYTES, 10 * MIB}, /* more than the area */
		{JEMALLOC_NEXT_BLOCK, AT + 4096}, {JEMALLOC_FREE_AT, AT - 4096},
		{JEMALLOC_FREE_AT, AT + 3080},	  {JEMALLOC_FREE_AT, AT + 5 * MIB},
		{JEMALLOC_FREE_BYTES, 4 * MIB},
	};
	static const uint64_t zeros[N_JEMALLOC_WORDS];

	(void)state;
	assert_false(torsh_jemalloc_is_base(&area, AT, zeros));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		uint64_t words[N_JEMALLOC_WORDS];

		memcpy(words, good, sizeof(words));
		words[others[i].word] = others[i].value;
		assert_false(torsh_jemalloc_is_base(&area, AT, words));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_known_by_their_first_words),
		cmocka_unit_test(other_words_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
