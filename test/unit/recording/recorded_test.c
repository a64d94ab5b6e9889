/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Chunks into a profile: rows that replace others, shares, and rows that nobody should believe. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/fixtures/recorded_fixture.h"
#include "tools/memory/allocation_sites.h"

static const struct allocation_site *find_site(const struct allocation_sites *sites, uint32_t stack)
{
	for (size_t i = 0; i < sites->n; i++) {
		if (sites->items[i].stack == stack)
			return &sites->items[i];
	}
	return NULL;
}

static void shares_at_the_peak_are_base_and_what_came_before_it(void **state)
{
	uint32_t seen_it = fixture_stack(&fixture, "a main"),
		 came_before = fixture_stack(&fixture, "b main");
	uint32_t gone = fixture_stack(&fixture, "c main");
	struct allocation_sites peak = {0}, live = {0};

	(void)state;
	/* The first saw peak 3: its change came after it. The second last changed before peak 3. */
	fixture_total(&fixture, seen_it, 3, 10, 1000, -4, -400);
	fixture_total(&fixture, came_before, 2, 1, 50, 2, 70);
	fixture_total(&fixture, gone, 1, 5, 500, -5, -500);
	fixture.heap.has_peak_number = 1;
	fixture.heap.peak_number = 3;
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	torsh_sites_collect(&peak, recording->processes[0], SITES_PEAK);
	assert_int_equal(peak.n, 2);
	assert_int_equal(find_site(&peak, seen_it)->bytes, 1000);
	assert_int_equal(find_site(&peak, seen_it)->blocks, 10);
	assert_int_equal(find_site(&peak, came_before)->bytes, 120);
	assert_int_equal(find_site(&peak, came_before)->blocks, 3);
	/* There is a Live row set, with nothing in it. */
	torsh_sites_collect(&live, recording->processes[0], SITES_LIVE);
	assert_int_equal(live.n, 0);
	torsh_sites_free(&peak);
	torsh_sites_free(&live);
}

static void without_live_rows_the_totals_have_what_is_live(void **state)
{
	uint32_t stack = fixture_stack(&fixture, "a main");
	struct allocation_sites live = {0};

	(void)state;
	fixture_total(&fixture, stack, 3, 10, 1000, -4, -400);
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	recording->processes[0]->has_live = false;
	torsh_sites_collect(&live, recording->processes[0], SITES_LIVE);
	assert_int_equal(live.n, 1);
	assert_int_equal(live.items[0].bytes, 600);
	assert_int_equal(live.items[0].blocks, 6);
	assert_false(live.items[0].has_times);
	assert_false(live.items[0].usable_is_known);
	torsh_sites_free(&live);
}

static void a_later_row_replaces_an_earlier_one(void **state)
{
	uint32_t stack = fixture_stack(&fixture, "a main");
	struct recorded_total total;

	(void)state;
	fixture_total(&fixture, stack, 1, 1, 100, 0, 0);
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	fixture.totals.n_stack = 0;
	fixture_total(&fixture, stack, 2, 7, 700, 0, 0);
	fixture.process.end_code = 3;
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	assert_int_equal(recording->n_processes, 1);
	assert_int_equal(recording->processes[0]->end_code, 3);
	assert_int_equal(recording->processes[0]->totals.n, 1);
	assert_true(torsh_totals_find(&recording->processes[0]->totals, stack, &total));
	assert_int_equal(total.base_bytes, 700);
	assert_false(torsh_totals_find(&recording->processes[0]->totals, 99, &total));
}

static void the_last_live_rows_count(void **state)
{
	uint32_t freed = fixture_stack(&fixture, "a main"),
		 kept = fixture_stack(&fixture, "b main");
	struct allocation_sites live = {0};

	(void)state;
	fixture_live(&fixture, freed, 1, 100);
	fixture.live.has_at_ns = 1;
	fixture.live.at_ns = 1000;
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	fixture.live.n_stack = 0;
	fixture_live(&fixture, kept, 2, 50);
	fixture.live.at_ns = 2000;
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	torsh_sites_collect(&live, recording->processes[0], SITES_LIVE);
	assert_int_equal(live.n, 1);
	assert_int_equal(live.items[0].stack, kept);
	assert_int_equal(live.items[0].usable_bytes, 66);
	torsh_sites_free(&live);
}

static void blocks_from_before_a_fork_are_not_live_ones(void **state)
{
	uint32_t both = fixture_stack(&fixture, "a main"), all = fixture_stack(&fixture, "b main");
	struct allocation_sites live = {0};

	(void)state;
	fixture_live(&fixture, both, 5, 500);
	fixture_live(&fixture, all, 2, 20);
	fixture.columns[LIVE_INHERITED][0] = 3;
	fixture.columns[LIVE_INHERITED_BYTES][0] = 300;
	fixture.columns[LIVE_INHERITED][1] = 2;
	fixture.columns[LIVE_INHERITED_BYTES][1] = 20;
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	torsh_sites_collect(&live, recording->processes[0], SITES_LIVE);
	assert_int_equal(live.n, 1);
	assert_int_equal(live.items[0].blocks, 2);
	assert_int_equal(live.items[0].bytes, 200);
	torsh_sites_free(&live);
}

static void stacks_are_walked_from_the_innermost_frame(void **state)
{
	uint32_t stack = fixture_stack(&fixture,
				       "inner@/lib/a.so middle@/lib/b.so outer@/lib/a.so"),
		 addresses[8];

	(void)state;
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	assert_int_equal(torsh_recording_walk(recording->processes[0], stack, addresses, 8), 3);
	assert_string_equal(torsh_recording_symbol(recording->processes[0], addresses[0]), "inner");
	assert_string_equal(torsh_recording_symbol(recording->processes[0], addresses[2]), "outer");
	assert_string_equal(torsh_recording_module(recording->processes[0], addresses[1])->path,
			    "/lib/b.so");
	assert_int_equal(torsh_recording_walk(recording->processes[0], stack, addresses, 1), 3);
	assert_int_equal(torsh_recording_walk(recording->processes[0], 1000, addresses, 8), 0);
	assert_int_equal(torsh_recording_walk(recording->processes[0], 0, addresses, 8), 0);
}

static void a_stack_that_is_its_own_parent_ends(void **state)
{
	uint32_t stack = fixture_stack(&fixture, "a b c"), addresses[8];

	(void)state;
	fixture.parent[0] = 3; /* the outermost claims to be called by the innermost */
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	assert_int_equal(recording->n_bad_rows, 1);
	assert_int_equal(torsh_recording_walk(recording->processes[0], stack, addresses, 8), 3);
}

static void columns_of_unequal_length_are_left_out(void **state)
{
	uint32_t stack = fixture_stack(&fixture, "a@/lib/a.so main@/lib/a.so");

	(void)state;
	fixture_total(&fixture, stack, 1, 1, 100, 0, 0);
	fixture_live(&fixture, stack, 1, 100);
	fixture.totals.n_seen = 0;
	fixture.live.n_bytes = 0;
	fixture.modules.n_end = 0;
	fixture.addresses.n_flags = 0;
	fixture.symbols.n_offset = 0;
	fixture.stacks.n_address = 0;
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	assert_int_equal(recording->n_bad_rows, 6);
	assert_int_equal(recording->processes[0]->totals.n, 0);
	assert_int_equal(recording->processes[0]->tables->n_stacks, 0);
}

static void numbers_beyond_all_tables_are_left_out(void **state)
{
	uint32_t stack = fixture_stack(&fixture, "a@/lib/a.so");

	(void)state;
	fixture_total(&fixture, UINT32_MAX, 1, 1, 100, 0, 0);
	fixture_live(&fixture, stack, 1, 100);
	fixture.stacks.first = UINT32_MAX;
	fixture.modules.has_first = fixture.addresses.has_first = 1;
	fixture.modules.first = UINT32_MAX;
	fixture.addresses.first = UINT32_MAX - 1;
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	assert_int_equal(recording->processes[0]->tables->n_stacks, 0);
	assert_int_equal(recording->processes[0]->tables->n_modules, 0);
	assert_int_equal(recording->processes[0]->tables->n_addresses, 0);
	assert_int_equal(recording->processes[0]->totals.n, 0);
	/* Modules, addresses, stacks, the total, and the symbol of an address that isn't there. */
	assert_int_equal(recording->n_bad_rows, 5);
}

static void a_session_of_another_format_is_refused(void **state)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Session session = TORSH__SESSION__INIT;

	(void)state;
	session.has_format = 1;
	session.format = 77;
	chunk.session = &session;
	assert_int_equal(torsh_recording_load(recording, &chunk), -EPROTO);
}

static void processes_are_found_by_number_in_any_order(void **state)
{
	struct fixture others[2];

	(void)state;
	fixture_start(&others[0], 7, 107);
	fixture_start(&others[1], 3, 103);
	assert_int_equal(fixture_give(&others[0], fixture_take_profile, recording), 0);
	assert_int_equal(fixture_give(&others[1], fixture_take_profile, recording), 0);
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	assert_int_equal(recording->n_processes, 3);
	assert_int_equal(recording->processes[0]->number, 1);
	assert_int_equal(torsh_recording_process(recording, 7)->pid, 107);
	assert_int_equal(torsh_recording_process(recording, 3)->pid, 103);
	assert_null(torsh_recording_process(recording, 2));
	assert_null(torsh_recording_process(recording, 8));
	fixture_free(&others[0]);
	fixture_free(&others[1]);
}

static void the_end_of_a_process_has_a_name(void **state)
{
	static const struct {
		Torsh__Process__EndKind end;
		bool has_code;
		int32_t code;
		const char *name;
	} ends[] = {
		{TORSH__PROCESS__END_KIND__EXITED, true, 0, "exit 0"},
		{TORSH__PROCESS__END_KIND__EXITED, false, 0, "exit"},
		{TORSH__PROCESS__END_KIND__SIGNALED, true, 9, "signal 9"},
		{TORSH__PROCESS__END_KIND__EXECUTED, false, 0, "exec"},
		{TORSH__PROCESS__END_KIND__RUNNING, false, 0, "running"},
		{TORSH__PROCESS__END_KIND__VANISHED, false, 0, "vanished"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		struct recorded_process process = {.end = ends[i].end,
						   .has_end_code = ends[i].has_code,
						   .end_code = ends[i].code};
		char name[32];

		torsh_recording_end_name(&process, name, sizeof(name));
		assert_string_equal(name, ends[i].name);
	}
}

/* Two rows; numbers NULL: as recordings had them that have none. */
static void give_threads(const uint32_t *numbers, uint32_t tid, uint64_t start_ns)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Threads row = TORSH__THREADS__INIT, *rows = &row;
	uint32_t tids[2] = {tid, tid + 1}, own_numbers[2];
	uint64_t starts[2] = {start_ns, start_ns}, zeros[2] = {0};
	char *names[2] = {(char[]){""}, (char[]){""}};

	row.process = 1;
	row.has_process = 1;
	row.n_tid = row.n_start_ns = row.n_end_ns = row.n_name = 2;
	row.n_allocs = row.n_alloc_bytes = row.n_frees = row.n_dropped = 2;
	row.tid = tids;
	row.start_ns = starts;
	row.name = names;
	row.end_ns = row.allocs = row.alloc_bytes = row.frees = row.dropped = zeros;
	for (size_t i = 0; numbers && i < 2; i++)
		own_numbers[i] = numbers[i];
	row.n_number = numbers ? 2 : 0;
	row.number = own_numbers;
	chunk.n_threads = 1;
	chunk.threads = &rows;
	assert_int_equal(torsh_recording_load(recording, &chunk), 0);
}

static void a_thread_stands_at_its_number(void **state)
{
	const struct recorded_process *process;

	(void)state;
	give_threads((uint32_t[]){0, 1}, 100, 5);
	give_threads((uint32_t[]){1, 4}, 200, 6);
	process = recording->processes[0];
	assert_int_equal(process->n_threads, 5);
	assert_int_equal(process->threads[0].tid, 100);
	assert_int_equal(process->threads[1].tid, 200);
	assert_int_equal(process->threads[4].tid, 201);
	assert_true(process->threads[4].is_known && !process->threads[3].is_known);
	give_threads((uint32_t[]){UINT32_MAX, UINT32_MAX - 1}, 300, 6);
	assert_int_equal(process->n_threads, 5);
	assert_int_equal(recording->n_bad_rows, 2);
}

static void threads_without_numbers_stand_in_their_order(void **state)
{
	(void)state;
	give_threads(NULL, 100, 1000000000);
	give_threads(NULL, 100, 1000000001);
	assert_int_equal(recording->processes[0]->n_threads, 2);
	assert_int_equal(recording->processes[0]->threads[1].tid, 101);
}

static void cpu_time_replaces_the_one_before_and_only_grows(void **state)
{
	uint64_t at_ns[] = {10, 20, 30}, sums[] = {1, 2, 3}, less[] = {1, 3, 2};
	Torsh__CpuTime row = TORSH__CPU_TIME__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;

	(void)state;
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	row.has_process = 1;
	row.process = fixture.process.process;
	row.at_ns = at_ns;
	row.ran_ns = row.waited_ns = sums;
	chunk.n_cpu_time = 1;
	chunk.cpu_time = &rows;
	for (size_t n = 2; n <= 3; n++) {
		row.n_at_ns = row.n_ran_ns = row.n_waited_ns = n;
		assert_int_equal(torsh_recording_load(recording, &chunk), 0);
		assert_int_equal(recording->processes[0]->cpu_time.n, n);
	}
	assert_int_equal(recording->processes[0]->cpu_time.points[2].sums[CPU_TIME_WAITED], 3);
	assert_int_equal(recording->n_bad_rows, 0);
	row.waited_ns = less;
	assert_int_equal(torsh_recording_load(recording, &chunk), 0);
	row.n_ran_ns = 2;
	assert_int_equal(torsh_recording_load(recording, &chunk), 0);
	assert_int_equal(recording->n_bad_rows, 2);
	assert_int_equal(recording->processes[0]->cpu_time.n, 3);
}

static void withheld_cpu_time_may_be_known_in_part(void **state)
{
	uint64_t at_ns[] = {10, 20, 30}, stolen[] = {0, 2, 3}, less[] = {1, 3, 2};
	Torsh__CpuSupply row = TORSH__CPU_SUPPLY__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	const struct recorded_sums *supply;

	(void)state;
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	row.has_process = 1;
	row.process = fixture.process.process;
	row.n_at_ns = row.n_stolen_ns = 3;
	row.at_ns = at_ns;
	row.stolen_ns = stolen;
	chunk.n_cpu_supply = 1;
	chunk.cpu_supply = &rows;
	assert_int_equal(torsh_recording_load(recording, &chunk), 0);
	supply = &recording->processes[0]->cpu_supply;
	assert_int_equal(supply->n, 3);
	assert_true(!supply->is_known[CPU_SUPPLY_THROTTLED] && supply->is_known[CPU_SUPPLY_STOLEN]);
	assert_int_equal(supply->points[1].sums[CPU_SUPPLY_STOLEN], 2);
	assert_int_equal(supply->points[2].sums[CPU_SUPPLY_THROTTLED], 0);
	assert_int_equal(recording->n_bad_rows, 0);
	/* It shrinks; of one column a row is missing. */
	row.stolen_ns = less;
	assert_int_equal(torsh_recording_load(recording, &chunk), 0);
	row.stolen_ns = stolen;
	row.throttled_ns = stolen;
	row.n_throttled_ns = 2;
	assert_int_equal(torsh_recording_load(recording, &chunk), 0);
	assert_int_equal(recording->n_bad_rows, 2);
	assert_int_equal(recording->processes[0]->cpu_supply.points[2].sums[CPU_SUPPLY_STOLEN], 3);
}

static void a_series_replaces_the_one_before(void **state)
{
	uint64_t at_ns[] = {10, 20, 30}, sums[] = {1, 2, 3};
	Torsh__Series row = TORSH__SERIES__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;

	(void)state;
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	row.has_process = 1;
	row.process = fixture.process.process;
	row.at_ns = at_ns;
	row.heap_bytes = row.mapped_bytes = row.rss_bytes = sums;
	chunk.n_series = 1;
	chunk.series = &rows;
	for (size_t n = 2; n <= 3; n++) {
		row.n_at_ns = row.n_heap_bytes = row.n_mapped_bytes = row.n_rss_bytes = n;
		assert_int_equal(torsh_recording_load(recording, &chunk), 0);
		assert_int_equal(recording->processes[0]->n_series, n);
	}
	assert_int_equal(recording->processes[0]->series[2].at_ns, 30);
}

static void give_growth(const uint32_t *stacks, size_t n, bool is_further)
{
	uint64_t numbers[] = {1, 1, 1};
	protobuf_c_boolean is_tensor[] = {0, 0, 0};
	Torsh__Growth row = TORSH__GROWTH__INIT, *rows = &row;
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;

	row.has_process = 1;
	row.process = fixture.process.process;
	if (is_further)
		row.further_stack = (uint32_t *)(uintptr_t)stacks;
	else
		row.stack = (uint32_t *)(uintptr_t)stacks;
	*(is_further ? &row.n_further_stack : &row.n_stack) = n;
	row.parts = row.late_blocks = row.late_bytes = numbers;
	row.is_tensor = is_tensor;
	row.n_parts = row.n_late_blocks = row.n_late_bytes = row.n_is_tensor = n;
	chunk.n_growth = 1;
	chunk.growth = &rows;
	assert_int_equal(torsh_recording_load(recording, &chunk), 0);
}

static void growth_goes_on_until_another_begins(void **state)
{
	uint32_t stacks[] = {fixture_stack(&fixture, "a main"), fixture_stack(&fixture, "b main"),
			     fixture_stack(&fixture, "c main")};
	const struct recorded_rows *survivors;

	(void)state;
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	survivors = &recording->processes[0]->survivors;
	give_growth(stacks, 2, false);
	give_growth(stacks + 2, 1, true);
	assert_int_equal(survivors->n, 3);
	give_growth(stacks + 1, 1, false);
	assert_int_equal(survivors->n, 1);
	assert_null(torsh_recording_row(survivors, stacks[0], sizeof(struct recorded_survivors)));
	assert_int_equal(recording->n_bad_rows, 0);
}

int main(void)
{
#define PROFILE_TEST(name) cmocka_unit_test_setup_teardown(name, make_profile, free_profile)
	const struct CMUnitTest tests[] = {
		PROFILE_TEST(shares_at_the_peak_are_base_and_what_came_before_it),
		PROFILE_TEST(without_live_rows_the_totals_have_what_is_live),
		PROFILE_TEST(a_later_row_replaces_an_earlier_one),
		PROFILE_TEST(the_last_live_rows_count),
		PROFILE_TEST(blocks_from_before_a_fork_are_not_live_ones),
		PROFILE_TEST(stacks_are_walked_from_the_innermost_frame),
		PROFILE_TEST(a_stack_that_is_its_own_parent_ends),
		PROFILE_TEST(columns_of_unequal_length_are_left_out),
		PROFILE_TEST(numbers_beyond_all_tables_are_left_out),
		PROFILE_TEST(a_session_of_another_format_is_refused),
		PROFILE_TEST(processes_are_found_by_number_in_any_order),
		PROFILE_TEST(a_thread_stands_at_its_number),
		PROFILE_TEST(threads_without_numbers_stand_in_their_order),
		PROFILE_TEST(a_series_replaces_the_one_before),
		PROFILE_TEST(cpu_time_replaces_the_one_before_and_only_grows),
		PROFILE_TEST(withheld_cpu_time_may_be_known_in_part),
		PROFILE_TEST(growth_goes_on_until_another_begins),
		cmocka_unit_test(the_end_of_a_process_has_a_name),
	};
#undef PROFILE_TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
