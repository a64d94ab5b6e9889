/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Sites with few blocks, against totals that are stored for each site. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "tools/writer/fold/tables/site_totals.h"

#define N_SITES 64u
#define N_EVENTS 90u
#define N_ROUNDS 2000u
#define LARGE (1u << SITE_SIZE_BITS) /* does not fit into a site */

struct sites {
	struct site_totals_table table;
	struct heap_site items[N_SITES];
	struct site_totals expected[N_SITES];
	uint64_t sizes[N_SITES]; /* of a live block; 0: none */
	struct peak_tracker tracker;
};

static void change(struct sites *sites, uint32_t i, uint32_t step, int64_t n, int64_t bytes)
{
	torsh_peak_tracker_change(&sites->tracker, 0, n, bytes);
	torsh_site_usage_change(&sites->expected[i].live, &sites->tracker, step, n, bytes);
	torsh_site_totals_change(&sites->table, &sites->items[i], &sites->tracker, step, n, bytes);
}

static void note(uint32_t *label, uint32_t now, bool is_first)
{
	*label = is_first || *label == now ? now : HEAP_SCOPES_DIFFER;
}

static void allocate(struct sites *sites, uint32_t i, uint32_t step, uint64_t *random)
{
	struct site_totals *expected = &sites->expected[i];
	uint64_t size = random_below(random, 8) ? 1 + random_below(random, 100)
						: LARGE - 2 + random_below(random, 4);
	struct scope scope = {.operator= random_below(random, 2),
			      .module = random_below(random, 2)};

	change(sites, i, step, 1, (int64_t)size);
	sites->sizes[i] = size;
	if (!random_below(random, 8))
		return; /* moved here from another site: not counted */
	note(&expected->scope.operator, scope.operator, !expected->allocs);
	note(&expected->scope.module, scope.module, !expected->allocs);
	expected->allocs++;
	expected->alloc_bytes += size;
	torsh_site_totals_count(&sites->table, &sites->items[i], size, &scope);
}

static void end(struct sites *sites, uint32_t i, uint32_t step, uint64_t *random)
{
	uint64_t size = sites->sizes[i];

	if (random_below(random, 2)) {
		sites->expected[i].temporary++;
		sites->expected[i].temporary_bytes += size;
		torsh_site_totals_count_temporary(&sites->table, &sites->items[i], size);
	}
	change(sites, i, step, -1, -(int64_t)size);
	sites->sizes[i] = 0;
}

static void assert_same(const struct sites *sites, uint32_t i)
{
	const struct site_totals *expected = &sites->expected[i];
	struct site_totals totals = torsh_site_totals(&sites->table, &sites->items[i]);

#define SAME(field) assert_int_equal(totals.field, expected->field)
	SAME(live.bytes);
	SAME(live.n);
	SAME(live.seen);
	SAME(live.first_step);
	SAME(live.last_step);
	SAME(live.base_first_step);
	SAME(live.base_last_step);
	SAME(live.base_bytes);
	SAME(live.base_n);
	SAME(allocs);
	SAME(alloc_bytes);
	SAME(temporary);
	SAME(temporary_bytes);
	SAME(scope.operator);
	SAME(scope.module);
#undef SAME
}

static void sites_with_one_block_have_exact_totals(void **state)
{
	uint64_t random = 7;
	static struct sites sites;

	(void)state;
	for (uint32_t round = 0; round < N_ROUNDS; round++) {
		memset(&sites, 0, sizeof(sites));
		/* Sites can't hold later numbers. */
		if (round % 4 == 0)
			sites.tracker.peak_number = (1u << SITE_PEAK_BITS) - 20;
		for (uint32_t event = 0; event < N_EVENTS; event++) {
			uint32_t i = random_below(&random, N_SITES);

			if (sites.sizes[i])
				end(&sites, i, event / 10, &random);
			else
				allocate(&sites, i, event / 10, &random);
			assert_same(&sites, i);
		}
		for (uint32_t i = 0; i < N_SITES; i++)
			assert_same(&sites, i);
		torsh_site_totals_destroy(&sites.table);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sites_with_one_block_have_exact_totals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
