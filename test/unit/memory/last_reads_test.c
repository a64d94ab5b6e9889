/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Forward passes of modules made by hand: when each of their blocks is read last. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/memory/whatif/last_reads.h"

#define KIB UINT64_C(1024)
#define SIZE (64 * KIB)
#define N_MAX 16

/* Operators run one after the other, for 10 ns each, and allocate 5 ns after they began. */
static struct call_operator operators[N_MAX];
static struct read_block blocks[N_MAX];
static size_t n_operators, n_blocks;

static int clear(void **state)
{
	(void)state;
	n_operators = n_blocks = 0;
	return 0;
}

/* Returns when the operator ends. */
static uint64_t run(uint64_t first_bytes, uint64_t second_bytes)
{
	operators[n_operators] = (struct call_operator){
		.start_ns = 10 * n_operators + 10,
		.end_ns = 10 * n_operators + 20,
		.input_bytes = {first_bytes, second_bytes},
		.n_inputs = second_bytes ? 2 : 1,
	};
	return operators[n_operators++].end_ns;
}

/* An operator that makes a block. Returns the block's number. */
static size_t make(uint64_t bytes, uint64_t first_bytes, uint64_t second_bytes)
{
	run(first_bytes, second_bytes);
	blocks[n_blocks] = (struct read_block){.bytes = bytes,
					       .from_ns = operators[n_operators - 1].start_ns + 5,
					       .until_ns = UINT64_MAX};
	return n_blocks++;
}

static uint64_t end_of_last(void)
{
	return operators[n_operators - 1].end_ns;
}

static uint64_t last_read(size_t block)
{
	return blocks[block].last_read_ns;
}

static void find(void)
{
	torsh_last_reads_find(operators, n_operators, blocks, n_blocks);
}

/* x + second(relu(norm(first(x)))), all of one size */
static void what_a_module_is_given_is_read_again_at_its_end(void **state)
{
	size_t first = make(SIZE, SIZE, 0), norm = make(SIZE, SIZE, 0);
	uint64_t norm_end = end_of_last(), relu_end, second_end;
	size_t relu = make(SIZE, SIZE, 0), second;

	(void)state;
	relu_end = end_of_last();
	second = make(SIZE, SIZE, 0);
	second_end = end_of_last();
	make(SIZE, SIZE, SIZE);
	find();
	assert_int_equal(last_read(first), norm_end);
	assert_int_equal(last_read(norm), relu_end);
	assert_int_equal(last_read(relu), second_end);
	assert_int_equal(last_read(second), end_of_last());
}

/*
 * y = x + attention(norm(x)); y + narrow(wide(norm(y))): one block of y and its norm, which are of
 * one size, is there until the last sum. Which of them can't be seen.
 */
static void a_sum_keeps_one_of_those_before_it(void **state)
{
	size_t sum, norm;
	uint64_t norm_end, wide_end;

	(void)state;
	make(SIZE, SIZE, 0);
	make(SIZE, SIZE, 0);
	sum = make(SIZE, SIZE, SIZE);
	norm = make(SIZE, SIZE, 0);
	norm_end = end_of_last();
	make(4 * SIZE, SIZE, 0);
	wide_end = end_of_last();
	make(SIZE, 4 * SIZE, 0);
	make(SIZE, SIZE, SIZE);
	find();
	assert_int_equal(last_read(sum), norm_end);
	assert_int_equal(last_read(norm), end_of_last());
	assert_true(wide_end < last_read(norm));
}

static void what_is_changed_in_place_is_read_afterwards(void **state)
{
	size_t made = make(SIZE, 2 * SIZE, 0);

	(void)state;
	run(SIZE, 0);
	operators[n_operators - 1].is_in_place = true;
	make(2 * SIZE, SIZE, 0);
	find();
	assert_int_equal(last_read(made), end_of_last());
}

/* A view can have another size, under which its block isn't found. */
static void what_has_views_is_not_known(void **state)
{
	size_t viewed = make(3 * SIZE, SIZE, 0), unread = make(7 * SIZE, SIZE, 0);

	(void)state;
	run(3 * SIZE, 0);
	make(SIZE, SIZE, SIZE);
	find();
	assert_int_equal(last_read(viewed), 0);
	assert_int_equal(last_read(unread), 0);
}

static void what_the_run_freed_before_is_not_read(void **state)
{
	size_t kept = make(SIZE, 2 * SIZE, 0), temporary = make(SIZE, 2 * SIZE, 0);

	(void)state;
	blocks[temporary].until_ns = end_of_last();
	make(2 * SIZE, SIZE, 0);
	blocks[temporary].until_ns = operators[n_operators - 1].start_ns - 1;
	find();
	assert_int_equal(last_read(kept), end_of_last());
	assert_int_equal(last_read(temporary), 0);
}

static void blocks_hold_rounded_tensors_and_rests_that_are_not_split_off(void **state)
{
	(void)state;
	assert_true(torsh_can_be_in_block(1, 512));
	assert_true(torsh_can_be_in_block(512, 512));
	assert_false(torsh_can_be_in_block(513, 512));
	assert_false(torsh_can_be_in_block(512, 1024));
	assert_true(torsh_can_be_in_block(20 * KIB * KIB, 21 * KIB * KIB));
	assert_false(torsh_can_be_in_block(20 * KIB * KIB, 21 * KIB * KIB + 512));
	assert_false(torsh_can_be_in_block(20 * KIB * KIB, 19 * KIB * KIB));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_a_module_is_given_is_read_again_at_its_end, clear),
		cmocka_unit_test_setup(a_sum_keeps_one_of_those_before_it, clear),
		cmocka_unit_test_setup(what_is_changed_in_place_is_read_afterwards, clear),
		cmocka_unit_test_setup(what_has_views_is_not_known, clear),
		cmocka_unit_test_setup(what_the_run_freed_before_is_not_read, clear),
		cmocka_unit_test(blocks_hold_rounded_tensors_and_rests_that_are_not_split_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
