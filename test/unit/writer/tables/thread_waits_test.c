/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Waits of threads as the writer folds them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/writer/fold/calls/thread_waits.h"

static void waits_add_up_by_thread_kind_stack_and_operator(void **state)
{
	const struct thread_wait_key key = {.thread = 1, .kind = 2, .stack = 3, .operator= 4 };
	struct thread_waits waits = {0};
	struct thread_wait_key other = key;

	(void)state;
	torsh_thread_waits_take(&waits, key, 100, false);
	torsh_thread_waits_take(&waits, key, 300, true);
	other.operator= 5;
	torsh_thread_waits_take(&waits, other, 7, false);
	other = key;
	other.stack = 9;
	torsh_thread_waits_take(&waits, other, 8, false);
	assert_int_equal(waits.n, 3);
	assert_int_equal(waits.items[0].n, 2);
	assert_int_equal(waits.items[0].total_ns, 400);
	assert_int_equal(waits.items[0].longest_ns, 300);
	assert_int_equal(waits.items[0].n_unfinished, 1);
	assert_int_equal(waits.items[1].total_ns, 7);
	assert_int_equal(waits.items[2].total_ns, 8);
	assert_int_equal(waits.n_taken, 4);
	torsh_thread_waits_free(&waits);
}

static void shorter_calls_add_up_by_thread_and_kind(void **state)
{
	struct thread_waits waits = {0};

	(void)state;
	torsh_thread_waits_shorter(&waits, 1, 2, 10, 500);
	torsh_thread_waits_shorter(&waits, 1, 3, 1, 5);
	torsh_thread_waits_shorter(&waits, 1, 2, 20, 600);
	assert_int_equal(waits.n_shorter, 2);
	assert_int_equal(waits.shorter[0].n, 30);
	assert_int_equal(waits.shorter[0].total_ns, 1100);
	assert_int_equal(waits.shorter[1].n, 1);
	torsh_thread_waits_free(&waits);
}

static void stacks_beyond_the_limit_count_as_none(void **state)
{
	struct thread_waits waits = {0};
	struct thread_wait_key key = {.thread = 1, .kind = 2};
	uint64_t n = 0, total_ns = 0;

	(void)state;
	for (uint32_t i = 1; i <= THREAD_WAITS_MAX + 1000; i++) {
		key.stack = i;
		torsh_thread_waits_take(&waits, key, 2, false);
	}
	key.stack = 1;
	torsh_thread_waits_take(&waits, key, 2, false);
	assert_int_equal(waits.n, THREAD_WAITS_MAX + 1);
	for (uint32_t i = 0; i < waits.n; i++) {
		n += waits.items[i].n;
		total_ns += waits.items[i].total_ns;
	}
	assert_int_equal(n, THREAD_WAITS_MAX + 1001);
	assert_int_equal(total_ns, 2 * n);
	assert_int_equal(waits.items[0].n, 2);
	assert_int_equal(waits.items[THREAD_WAITS_MAX].key.stack, 0);
	assert_int_equal(waits.items[THREAD_WAITS_MAX].n, 1000);
	torsh_thread_waits_free(&waits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_add_up_by_thread_kind_stack_and_operator),
		cmocka_unit_test(shorter_calls_add_up_by_thread_and_kind),
		cmocka_unit_test(stacks_beyond_the_limit_count_as_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
