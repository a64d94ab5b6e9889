/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Lists of sites are read as they were written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "tools/writer/fold/tables/moment_sites.h"

#define N_SITES 1000u

static void a_list_is_read_as_it_was_written(void **state)
{
	struct moment_site written[N_SITES], site = {0};
	struct moment_sites sites = {0};
	struct moment_sites_reader reader;
	uint64_t random = 1;

	(void)state;
	for (uint32_t i = 0; i < N_SITES; i++) {
		written[i] = (struct moment_site){
			.site = site.site + (uint32_t)random_below(&random, 1u << 20) + (i != 0),
			.n = (uint32_t)random_wide(&random) >> random_below(&random, 32),
			.bytes = random_below(&random, 4) ? random_wide(&random) : 0,
		};
		if (i == N_SITES - 1)
			written[i] = (struct moment_site){
				.site = UINT32_MAX, .n = UINT32_MAX, .bytes = UINT64_MAX};
		site = written[i];
		torsh_moment_sites_add(&sites, &site);
	}
	torsh_moment_sites_end(&sites);
	assert_int_equal(sites.n, N_SITES);
	reader = torsh_moment_sites_read(&sites);
	for (uint32_t i = 0; i < N_SITES; i++) {
		assert_true(torsh_moment_sites_next(&reader, &site));
		assert_int_equal(site.site, written[i].site);
		assert_int_equal(site.n, written[i].n);
		assert_int_equal(site.bytes, written[i].bytes);
	}
	assert_false(torsh_moment_sites_next(&reader, &site));
	torsh_moment_sites_destroy(&sites);
}

static void an_empty_list_has_no_site(void **state)
{
	struct moment_sites sites = {0};
	struct moment_sites_reader reader;
	struct moment_site site;

	(void)state;
	torsh_moment_sites_end(&sites);
	reader = torsh_moment_sites_read(&sites);
	assert_false(torsh_moment_sites_next(&reader, &site));
	torsh_moment_sites_destroy(&sites);
}

static void a_block_of_a_near_site_takes_few_bytes(void **state)
{
	struct moment_sites sites = {0};

	(void)state;
	for (uint32_t i = 0; i < N_SITES; i++)
		torsh_moment_sites_add(&sites,
				       &(struct moment_site){.site = 3 * i, .n = 1, .bytes = 100});
	assert_int_equal(sites.bytes.n, 2 * N_SITES);
	torsh_moment_sites_destroy(&sites);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_is_read_as_it_was_written),
		cmocka_unit_test(an_empty_list_has_no_site),
		cmocka_unit_test(a_block_of_a_near_site_takes_few_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
