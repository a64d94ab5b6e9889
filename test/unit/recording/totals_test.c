/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Packed totals give back every field that was put, also where a row is replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tools/recording/totals.h"

#define N_STACKS 3000u

/* All kinds of values: none, small ones, and the largest of each field. */
static struct recorded_total total_of(uint32_t stack, uint32_t round)
{
	uint64_t value = stack % 3 == round % 3 ? 0 : stack % 7 ? stack * (round + 1) : UINT64_MAX;
	uint32_t number = (uint32_t)value;

	return (struct recorded_total){
		.stack = stack,
		.seen = number,
		.allocs = value,
		.alloc_bytes = value / 2,
		.temporary = value / 3,
		.temporary_bytes = ~value,
		.base_blocks = value,
		.base_bytes = value ^ stack,
		.delta_blocks = -(int64_t)(value >> 1),
		.delta_bytes = (int64_t)(value >> 1),
		.alloc_variance = {.blocks = (double)value, .bytes = 0.5},
		.live_variance = {.bytes = (double)stack / 3},
		.operator= number,
		.module = UINT32_MAX,
		.first_step = stack % 2,
		.base_last_step = number,
	};
}

static void assert_total(const struct recorded_total *is, const struct recorded_total *expected)
{
#define FIELD(name) assert_true(is->name == expected->name)
	FIELD(stack);
	FIELD(seen);
	FIELD(allocs);
	FIELD(alloc_bytes);
	FIELD(temporary);
	FIELD(temporary_bytes);
	FIELD(base_blocks);
	FIELD(base_bytes);
	FIELD(delta_blocks);
	FIELD(delta_bytes);
	FIELD(alloc_variance.blocks);
	FIELD(alloc_variance.bytes);
	FIELD(base_variance.blocks);
	FIELD(base_variance.bytes);
	FIELD(live_variance.blocks);
	FIELD(live_variance.bytes);
	FIELD(operator);
	FIELD(module);
	FIELD(first_step);
	FIELD(last_step);
	FIELD(base_first_step);
	FIELD(base_last_step);
#undef FIELD
}

/* What is read of a row without all of it. */
static void assert_parts(const struct recorded_totals *totals, size_t i,
			 const struct recorded_total *expected)
{
	struct allocation_count count = torsh_totals_count(totals, i);

	assert_int_equal(count.stack, expected->stack);
	assert_int_equal(count.allocs, expected->allocs);
	assert_int_equal(torsh_totals_has_part(totals, i, TOTAL_TEMPORARY),
			 expected->temporary != 0);
	assert_int_equal(torsh_totals_has_part(totals, i, TOTAL_STEPS), expected->last_step != 0);
}

static void a_row_is_what_was_put_last(void **state)
{
	struct recorded_totals totals = {0};

	(void)state;
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t stack = 1; stack < N_STACKS; stack++) {
			struct recorded_total total = total_of(stack, round);

			assert_true(torsh_totals_put(&totals, &total));
		}
		assert_int_equal(totals.n, N_STACKS - 1);
		for (uint32_t stack = 1; stack < N_STACKS; stack++) {
			struct recorded_total expected = total_of(stack, round), total;

			assert_true(torsh_totals_has(&totals, stack));
			assert_true(torsh_totals_find(&totals, stack, &total));
			assert_total(&total, &expected);
			total = torsh_totals_at(&totals, stack - 1);
			assert_total(&total, &expected);
			assert_parts(&totals, stack - 1, &expected);
		}
	}
	torsh_totals_free(&totals);
}

static void a_stack_without_a_row_is_empty(void **state)
{
	struct recorded_totals totals = {0};
	struct recorded_total total;

	(void)state;
	assert_false(torsh_totals_has(&totals, 1));
	assert_false(torsh_totals_find(&totals, 1, &total));
	assert_int_equal(total.allocs, 0);
	assert_int_equal(total.operator, 0);
	torsh_totals_free(&totals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_is_what_was_put_last),
		cmocka_unit_test(a_stack_without_a_row_is_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
