/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Usages by site, against a struct site_usage for each. */
#include <stdbool.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "tools/writer/fold/tables/peak_usages.h"

#define N_SITES 24u
#define N_BLOCKS 40u
#define N_CHANGES 400u
#define N_ROUNDS 1000u
#define LARGE (UINT64_C(1) << 20) /* the least size that needs an item */

struct sites {
	struct peak_usages usages;
	struct site_usage expected[N_SITES];
	struct peak_tracker tracker;
	struct {
		uint64_t size;
		uint32_t site;
		bool is_live;
	} blocks[N_BLOCKS];
};

static void compare(struct sites *sites)
{
	const struct peak_tracker *tracker = &sites->tracker;

	for (uint32_t i = 0; i < N_SITES + 1; i++) {
		struct site_usage usage = torsh_peak_usages_get(&sites->usages, i, tracker),
				  none = {0};
		const struct site_usage *expected = i < N_SITES ? &sites->expected[i] : &none;

		assert_int_equal(usage.n, expected->n);
		assert_int_equal(usage.bytes, expected->bytes);
		assert_int_equal(torsh_site_usage_peak_n(&usage, tracker),
				 torsh_site_usage_peak_n(expected, tracker));
		assert_int_equal(torsh_site_usage_peak_bytes(&usage, tracker),
				 torsh_site_usage_peak_bytes(expected, tracker));
		if (!torsh_site_usage_peak_n(expected, tracker))
			continue;
		assert_int_equal(torsh_site_usage_peak_first_step(&usage, tracker),
				 torsh_site_usage_peak_first_step(expected, tracker));
		assert_int_equal(torsh_site_usage_peak_last_step(&usage, tracker),
				 torsh_site_usage_peak_last_step(expected, tracker));
	}
}

static void change(struct sites *sites, uint32_t site, uint32_t step, int64_t n, int64_t bytes)
{
	torsh_peak_tracker_change(&sites->tracker, 0, n, bytes);
	torsh_site_usage_change(&sites->expected[site], &sites->tracker, step, n, bytes);
	torsh_peak_usages_change(&sites->usages, site, &sites->tracker, step, n, bytes);
}

static void change_any(struct sites *sites, uint64_t *random, uint32_t step)
{
	uint32_t i = (uint32_t)random_below(random, N_BLOCKS);
	uint32_t site = (uint32_t)random_below(random, N_SITES);
	uint64_t size = random_below(random, 4) ? random_below(random, 100)
						: LARGE - 2 + random_below(random, 4);

	if (sites->blocks[i].is_live) {
		change(sites, sites->blocks[i].site, step, -1, -(int64_t)sites->blocks[i].size);
		sites->blocks[i].is_live = false;
		return;
	}
	sites->blocks[i].site = site;
	sites->blocks[i].size = size;
	sites->blocks[i].is_live = true;
	change(sites, site, step, 1, (int64_t)size);
}

/* Copy everything into usages that were empty. */
static void begin_anew(struct sites *sites)
{
	struct peak_usages usages = {0};

	torsh_peak_tracker_settle(&sites->tracker);
	for (uint32_t i = 0; i < N_SITES; i++) {
		const struct site_usage *usage = &sites->expected[i];

		if (usage->n || usage->bytes || torsh_site_usage_peak_n(usage, &sites->tracker) ||
		    torsh_site_usage_peak_bytes(usage, &sites->tracker))
			torsh_peak_usages_set(&usages, i, &sites->tracker, usage);
	}
	torsh_peak_usages_destroy(&sites->usages);
	sites->usages = usages;
}

static void usages_are_those_that_are_stored_for_each_site(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < N_ROUNDS; seed++) {
		struct sites sites;
		uint64_t random = seed;
		uint32_t changes_per_step = 1 + (uint32_t)random_below(&random, 50);

		memset(&sites, 0, sizeof(sites));
		for (uint32_t i = 0; i < N_CHANGES; i++) {
			change_any(&sites, &random, 3 + i / changes_per_step);
			if (!random_below(&random, 50))
				torsh_peak_tracker_settle(&sites.tracker);
			if (!random_below(&random, 100))
				begin_anew(&sites);
			compare(&sites);
		}
		torsh_peak_usages_destroy(&sites.usages);
	}
}

static void more_steps_than_have_numbers_are_counted(void **state)
{
	struct sites sites;

	(void)state;
	memset(&sites, 0, sizeof(sites));
	for (uint32_t i = 0; i < 2000; i++) {
		uint32_t site = i % N_SITES;

		if (sites.expected[site].n)
			change(&sites, site, i, -1, -10);
		change(&sites, site, i, 1, 10);
		compare(&sites);
	}
	torsh_peak_usages_destroy(&sites.usages);
}

static void sites_that_hold_nothing_need_no_items(void **state)
{
	struct sites sites;

	(void)state;
	memset(&sites, 0, sizeof(sites));
	change(&sites, 0, 0, 1, 1000);
	for (uint32_t i = 0; i < 1000; i++) {
		change(&sites, i % N_SITES, 0, 1, 10);
		change(&sites, i % N_SITES, 0, 1, 20);
		change(&sites, i % N_SITES, 0, -1, -10);
		change(&sites, i % N_SITES, 0, -1, -20);
		compare(&sites);
	}
	assert_true(sites.usages.n_items <= 3);
	assert_true(sites.usages.n_changed <= N_SITES);
	torsh_peak_usages_destroy(&sites.usages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(usages_are_those_that_are_stored_for_each_site),
		cmocka_unit_test(more_steps_than_have_numbers_are_counted),
		cmocka_unit_test(sites_that_hold_nothing_need_no_items),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
