/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Cached suffixes: those that followed the last one are known without reading it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "agent/stack/capture/suffixes.h"

#define N_ENTRIES 8u
#define PAIR_BITS 2u
#define GENERATION 1u

static struct suffix entries[N_ENTRIES];
static uint16_t pairs[1u << PAIR_BITS][2];
static struct suffix_cache cache;
static uint32_t n_evicted;

static int start(void **state)
{
	(void)state;
	memset(entries, 0, sizeof(entries));
	memset(pairs, 0, sizeof(pairs));
	torsh_suffixes_use(&cache, entries, N_ENTRIES, N_ENTRIES, pairs, PAIR_BITS);
	return 0;
}

static uint32_t add(uint32_t pair)
{
	uint32_t n = torsh_suffixes_add(&cache, pair, GENERATION, &n_evicted);

	torsh_suffixes_follow(&cache, n);
	return n;
}

static void assert_next_is_the_last_entrys(void)
{
	assert_int_equal(cache.next[0], entries[cache.last].next[0]);
	assert_int_equal(cache.next[1], entries[cache.last].next[1]);
}

static void those_that_followed_are_next(void **state)
{
	uint32_t a = add(0), b = add(1), c = add(2);

	(void)state;
	torsh_suffixes_follow(&cache, a);
	assert_int_equal(cache.next[0], b);
	torsh_suffixes_follow(&cache, c);
	torsh_suffixes_follow(&cache, a);
	assert_int_equal(cache.next[0], c);
	assert_int_equal(cache.next[1], b);
}

/* It may follow itself, and then is its own next one. */
static void an_entry_follows_itself(void **state)
{
	uint32_t a = add(0);

	(void)state;
	torsh_suffixes_follow(&cache, a);
	assert_int_equal(cache.next[0], a);
	assert_next_is_the_last_entrys();
}

/* Both entries of the pair are in use: the older one, which was used last, is replaced. */
static void nothing_follows_an_entry_that_was_replaced(void **state)
{
	uint32_t a = add(0), b = add(0);

	(void)state;
	torsh_suffixes_follow(&cache, a);
	assert_int_equal(cache.next[0], b);
	assert_int_equal(torsh_suffixes_add(&cache, 0, GENERATION, &n_evicted), a);
	assert_int_equal(cache.next[0], 0);
	assert_next_is_the_last_entrys();
}

static void next_is_the_last_entrys_in_any_order(void **state)
{
	(void)state;
	srandom(1);
	for (uint32_t i = 0; i < 100000; i++) {
		if (random() % 3 == 0)
			add((uint32_t)random() % (1u << PAIR_BITS));
		else
			torsh_suffixes_follow(&cache, (uint32_t)random() % cache.n_used);
		assert_next_is_the_last_entrys();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(those_that_followed_are_next, start),
		cmocka_unit_test_setup(an_entry_follows_itself, start),
		cmocka_unit_test_setup(nothing_follows_an_entry_that_was_replaced, start),
		cmocka_unit_test_setup(next_is_the_last_entrys_in_any_order, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
