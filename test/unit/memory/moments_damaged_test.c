/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Moments of the heap from tables that are whole, lack stacks, or contradict themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/unit/fixtures/recorded_fixture.h"
#include "tools/memory/moments.h"

#define N 3

/* Three moments; of each one stack changes, by the rows of the columns below. */
struct table {
	uint32_t number[N], piece[N], kind[N], name[N], n_stacks[N], stack[N];
	uint64_t at_ns[N], bytes[N], blocks[N], stack_bytes[N], stack_blocks[N];
};

static struct table make_table(uint32_t stack, uint32_t other)
{
	return (struct table){
		.number = {0, 1, 2},
		.n_stacks = {1, 1, 1},
		.stack = {stack, other, stack},
		.at_ns = {1000, 2000, 3000},
		.bytes = {100, 150, 350},
		.blocks = {1, 2, 4},
		.stack_bytes = {100, 50, 300},
		.stack_blocks = {1, 1, 3},
	};
}

static void load(struct table *table, size_t n_stack)
{
	Torsh__Chunk chunk = TORSH__CHUNK__INIT;
	Torsh__Moments row = TORSH__MOMENTS__INIT, *rows = &row;

	row.has_process = 1;
	row.process = fixture.process.process;
#define COLUMN(name, count)     \
	row.name = table->name; \
	row.n_##name = count;
	COLUMN(number, N)
	COLUMN(piece, N)
	COLUMN(kind, N)
	COLUMN(name, N)
	COLUMN(n_stacks, N)
	COLUMN(at_ns, N)
	COLUMN(bytes, N)
	COLUMN(blocks, N)
	COLUMN(stack, n_stack)
	COLUMN(stack_bytes, n_stack)
	COLUMN(stack_blocks, n_stack)
#undef COLUMN
	chunk.n_moments = 1;
	chunk.moments = &rows;
	assert_int_equal(fixture_give(&fixture, fixture_take_profile, recording), 0);
	assert_int_equal(torsh_recording_load(recording, &chunk), 0);
}

/* Returns which of the three times have a moment, as bits, once the others were left out. */
static unsigned find_times(size_t n_damaged)
{
	struct memory_moments moments;
	unsigned times = 0;

	torsh_memory_moments_make(&moments, recording->processes[0]);
	assert_int_equal(moments.n_damaged, n_damaged);
	for (size_t i = 0; i < moments.n; i++) {
		if (moments.items[i].kind == MEMORY_AT_TIME)
			times |= 1u << (moments.items[i].at_ns / 1000 - 1);
	}
	torsh_memory_moments_free(&moments);
	return times;
}

static void a_whole_table_has_all_moments(void **state)
{
	struct table table =
		make_table(fixture_stack(&fixture, "a main"), fixture_stack(&fixture, "b main"));

	(void)state;
	load(&table, N);
	assert_int_equal(find_times(0), 7);
	assert_int_equal(recording->n_bad_rows, 0);
}

static void a_moment_that_lacks_a_stack_is_left_out_and_counted(void **state)
{
	struct table table =
		make_table(fixture_stack(&fixture, "a main"), fixture_stack(&fixture, "b main"));

	(void)state;
	/* The other stack's usage is of a chunk that is missing: later sums lack it too. */
	table.stack_bytes[1] = 0;
	load(&table, N);
	assert_int_equal(find_times(2), 1);
}

static void a_wrong_sum_costs_one_moment_only(void **state)
{
	struct table table =
		make_table(fixture_stack(&fixture, "a main"), fixture_stack(&fixture, "b main"));

	(void)state;
	table.blocks[1] = 99;
	load(&table, N);
	assert_int_equal(find_times(1), 5);
}

static void columns_of_other_lengths_are_a_bad_row(void **state)
{
	struct table table =
		make_table(fixture_stack(&fixture, "a main"), fixture_stack(&fixture, "b main"));

	(void)state;
	load(&table, N - 1);
	assert_int_equal(find_times(0), 0);
	assert_int_equal(recording->n_bad_rows, 1);
}

static void an_unknown_kind_is_a_bad_row(void **state)
{
	struct table table =
		make_table(fixture_stack(&fixture, "a main"), fixture_stack(&fixture, "b main"));

	(void)state;
	table.kind[2] = N_RECORDED_MOMENT_KINDS;
	load(&table, N);
	assert_int_equal(find_times(1), 3);
	assert_int_equal(recording->n_bad_rows, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_profile, free_profile)
		TEST(a_whole_table_has_all_moments),
		TEST(a_moment_that_lacks_a_stack_is_left_out_and_counted),
		TEST(a_wrong_sum_costs_one_moment_only),
		TEST(columns_of_other_lengths_are_a_bad_row),
		TEST(an_unknown_kind_is_a_bad_row),
#undef TEST
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
