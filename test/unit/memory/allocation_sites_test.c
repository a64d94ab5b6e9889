/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Lists of allocation sites: merged, sorted, narrowed down; and leaks, which are such a list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/fixtures/recorded_fixture.h"
#include "tools/memory/leaks/leaks.h"

static struct allocation_sites collect(void)
{
	struct allocation_sites sites = {0};

	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	torsh_sites_collect(&sites, recording->processes[0], SITES_LIVE);
	return sites;
}

static void stacks_that_are_alike_up_to_the_depth_are_merged(void **state)
{
	struct allocation_sites sites;

	(void)state;
	fixture_live(&fixture, fixture_stack(&fixture, "a b main"), 1, 10);
	fixture_live(&fixture, fixture_stack(&fixture, "a b other main"), 2, 200);
	fixture_live(&fixture, fixture_stack(&fixture, "a c main"), 4, 3000);
	fixture_live(&fixture, fixture_stack(&fixture, "a"), 8, 40000);
	sites = collect();
	sites.depth = 2;
	torsh_sites_merge_stacks(&sites, NULL);
	torsh_sites_sort(&sites, ORDER_BYTES);
	assert_int_equal(sites.n, 3);
	assert_int_equal(sites.items[0].bytes, 40000);
	assert_int_equal(sites.items[1].bytes, 3000);
	assert_int_equal(sites.items[2].bytes, 210);
	assert_int_equal(sites.items[2].blocks, 3);
	assert_int_equal(sites.items[2].first_ns, 1000);
	assert_int_equal(sites.items[2].last_ns, 4000);
	sites.depth = 1;
	torsh_sites_merge_stacks(&sites, NULL);
	assert_int_equal(sites.n, 1);
	assert_int_equal(sites.items[0].bytes, 43210);
	torsh_sites_free(&sites);
}

static void allocation_sites_are_sorted_as_requested(void **state)
{
	uint32_t many = fixture_stack(&fixture, "a main"),
		 large = fixture_stack(&fixture, "b main");
	struct allocation_sites sites;

	(void)state;
	fixture_live(&fixture, many, 100, 10);
	fixture_live(&fixture, large, 1, 1000);
	sites = collect();
	torsh_sites_sort(&sites, ORDER_BYTES);
	assert_int_equal(sites.items[0].stack, large);
	torsh_sites_sort(&sites, ORDER_BLOCKS);
	assert_int_equal(sites.items[0].stack, many);
	torsh_sites_sort(&sites, ORDER_FIRST);
	assert_int_equal(sites.items[0].stack, many);
	torsh_sites_sort(&sites, ORDER_LAST);
	assert_int_equal(sites.items[0].stack, large);
	torsh_sites_free(&sites);
}

static void small_ones_go_behind_large_ones(void **state)
{
	struct allocation_sites sites;

	(void)state;
	fixture_live(&fixture, fixture_stack(&fixture, "a main"), 1, 10);
	fixture_live(&fixture, fixture_stack(&fixture, "b main"), 1, 20);
	fixture_live(&fixture, fixture_stack(&fixture, "c main"), 1, 5);
	fixture_live(&fixture, fixture_stack(&fixture, "d main"), 1, 30);
	sites = collect();
	assert_int_equal(torsh_sites_put_large_first(&sites, 20), 2);
	assert_int_equal(sites.items[0].bytes, 20);
	assert_int_equal(sites.items[1].bytes, 30);
	assert_int_equal(sites.items[2].bytes, 10);
	assert_int_equal(torsh_sites_put_large_first(&sites, 0), 4);
	torsh_sites_free(&sites);
}

static void stacks_that_look_different_stay_apart_once_named(void **state)
{
	struct symbols *symbols = torsh_symbols_create(false);
	struct allocation_sites sites;

	(void)state;
	fixture_live(&fixture, fixture_stack(&fixture, "a@/x main@/x"), 1, 10);
	fixture_live(&fixture, fixture_stack(&fixture, "b@/x main@/x"), 1, 20);
	sites = collect();
	torsh_sites_sort(&sites, ORDER_BYTES);
	torsh_sites_name(&sites, symbols, 2);
	assert_int_equal(sites.n, 2);
	assert_int_equal(sites.items[0].n_frames, 2);
	assert_string_equal(sites.items[0].frames[0]->function, "b");
	assert_string_equal(sites.items[0].frames[0]->module, "/x");
	assert_null(sites.items[0].frames[0]->file);
	assert_int_equal(sites.items[0].frames[0]->offset, 0x10);
	assert_string_equal(sites.items[1].frames[1]->function, "main");
	torsh_sites_free(&sites);
	torsh_symbols_destroy(symbols);
}

static void only_as_many_as_requested_get_names(void **state)
{
	struct symbols *symbols = torsh_symbols_create(false);
	struct allocation_sites sites;

	(void)state;
	fixture_live(&fixture, fixture_stack(&fixture, "a main"), 1, 30);
	fixture_live(&fixture, fixture_stack(&fixture, "b main"), 1, 20);
	fixture_live(&fixture, fixture_stack(&fixture, "c main"), 1, 10);
	sites = collect();
	torsh_sites_sort(&sites, ORDER_BYTES);
	torsh_sites_name(&sites, symbols, 2);
	assert_int_equal(sites.n, 3);
	assert_non_null(sites.items[1].frames);
	assert_null(sites.items[2].frames);
	torsh_sites_free(&sites);
	torsh_symbols_destroy(symbols);
}

static void bookkeeping_and_suppressed_blocks_are_no_leaks(void **state)
{
	struct symbols *symbols = torsh_symbols_create(false);
	struct suppress suppress = {0};
	struct leaks leaks = {0};
	unsigned line;

	(void)state;
	assert_int_equal(torsh_suppress_parse(&suppress,
					      "leak:nothing\nleak:^known_\nleak:cache.so\n", &line),
			 0);
	fixture_live(&fixture, fixture_stack(&fixture, "leak@/opt/p main@/opt/p"), 2, 100);
	fixture_live(&fixture,
		     fixture_stack(&fixture, "alloc@/opt/p known_leak@/opt/p main@/opt/p"), 3,
		     1000);
	fixture_live(&fixture, fixture_stack(&fixture, "fill@/lib/cache.so main@/opt/p"), 4, 10000);
	fixture_live(&fixture,
		     fixture_stack(&fixture, "?@/lib/libc.so.6 printf@/lib/libc.so.6 main@/opt/p"),
		     1, 1024);
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	torsh_leaks_find(&leaks, recording->processes, 1, symbols, &suppress);
	assert_int_equal(leaks.bytes, 100);
	assert_int_equal(leaks.blocks, 2);
	assert_int_equal(leaks.processes[0].bytes, 100);
	assert_int_equal(leaks.found.n, 1);
	assert_true(leaks.usable_is_known);
	assert_int_equal(leaks.usable_bytes, 116);
	assert_int_equal(leaks.bookkeeping_bytes, 1024);
	assert_int_equal(leaks.n_bookkeeping, 1);
	assert_string_equal(leaks.bookkeeping[0].what, "C library: stdio buffers");
	assert_int_equal(leaks.suppressed_bytes, 11000);
	assert_int_equal(leaks.suppressed_blocks, 7);
	assert_int_equal(suppress.rules[0].n_stacks, 0);
	assert_int_equal(suppress.rules[1].bytes, 1000);
	assert_int_equal(suppress.rules[2].blocks, 4);
	torsh_leaks_free(&leaks);
	torsh_suppress_free(&suppress);
	torsh_symbols_destroy(symbols);
}

static void what_was_alive_at_an_exec_is_no_leak(void **state)
{
	struct symbols *symbols = torsh_symbols_create(false);
	struct fixture after;
	struct leaks leaks = {0}, at_exec = {.at_exec = true};

	(void)state;
	fixture_start(&after, 2, 100);
	fixture.process.end = TORSH__PROCESS__END_KIND__EXECUTED;
	fixture_live(&fixture, fixture_stack(&fixture, "keep main"), 2, 50);
	fixture_live(&after, fixture_stack(&after, "leak main"), 1, 7);
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	assert_int_equal(fixture_give(&after, fixture_take_profile, recording), 0);
	torsh_leaks_find(&leaks, recording->processes, 2, symbols, NULL);
	assert_int_equal(leaks.bytes, 7);
	assert_int_equal(leaks.exec_bytes, 50);
	assert_int_equal(leaks.processes[0].bytes, 0);
	assert_int_equal(leaks.processes[0].exec_blocks, 2);
	assert_int_equal(leaks.processes[1].exec_bytes, 0);
	torsh_leaks_find(&at_exec, recording->processes, 2, symbols, NULL);
	assert_int_equal(at_exec.found.n, 1);
	assert_int_equal(at_exec.bytes, 50);
	assert_int_equal(at_exec.exec_bytes, 50);
	torsh_leaks_free(&at_exec);
	torsh_leaks_free(&leaks);
	fixture_free(&after);
	torsh_symbols_destroy(symbols);
}

static void leaks_of_all_processes_are_summed(void **state)
{
	struct symbols *symbols = torsh_symbols_create(false);
	struct fixture child;
	struct leaks leaks = {0};

	(void)state;
	fixture_start(&child, 2, 200);
	fixture_live(&child, fixture_stack(&child, "leak main"), 1, 7);
	fixture_live(&fixture, fixture_stack(&fixture, "leak main"), 1, 5);
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	assert_int_equal(fixture_give(&child, fixture_take_profile, recording), 0);
	torsh_leaks_find(&leaks, recording->processes, 2, symbols, NULL);
	assert_int_equal(leaks.bytes, 12);
	assert_int_equal(leaks.processes[0].bytes, 5);
	assert_int_equal(leaks.processes[1].bytes, 7);
	torsh_sites_sort(&leaks.found, ORDER_BYTES);
	torsh_sites_name(&leaks.found, symbols, leaks.found.n);
	assert_int_equal(leaks.found.n, 2); /* never merged: another process is another leak */
	assert_int_equal(leaks.found.items[0].process->pid, 200);
	torsh_leaks_free(&leaks);
	fixture_free(&child);
	torsh_symbols_destroy(symbols);
}

int main(void)
{
#define HOLDERS_TEST(name) cmocka_unit_test_setup_teardown(name, make_profile, free_profile)
	const struct CMUnitTest tests[] = {
		HOLDERS_TEST(stacks_that_are_alike_up_to_the_depth_are_merged),
		HOLDERS_TEST(allocation_sites_are_sorted_as_requested),
		HOLDERS_TEST(small_ones_go_behind_large_ones),
		HOLDERS_TEST(stacks_that_look_different_stay_apart_once_named),
		HOLDERS_TEST(only_as_many_as_requested_get_names),
		HOLDERS_TEST(bookkeeping_and_suppressed_blocks_are_no_leaks),
		HOLDERS_TEST(what_was_alive_at_an_exec_is_no_leak),
		HOLDERS_TEST(leaks_of_all_processes_are_summed),
	};
#undef HOLDERS_TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
