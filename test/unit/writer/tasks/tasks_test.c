/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Requests and tasks: what counts for which, and which of them are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/writer/fold/tasks/tasks.h"

enum { NAME = 3, OTHER = 4, INNER = 5 };

static void begin(struct tasks *tasks, uint64_t number, uint32_t name, uint64_t parent,
		  uint64_t at_ns)
{
	torsh_tasks_begin(tasks,
			  &(struct event_task){.number = number, .name = name, .parent = parent},
			  at_ns);
}

static void turn(struct tasks *tasks, struct task_thread *thread, uint64_t number, uint64_t cpu_ns,
		 uint64_t at_ns)
{
	torsh_tasks_turn(tasks, thread,
			 &(struct event_task_turn){.number = number, .cpu_ns = cpu_ns}, at_ns);
}

static void turns_are_charged_to_the_task_that_had_the_thread(void **state)
{
	struct tasks tasks = {0};
	struct task_thread thread = {0};

	(void)state;
	begin(&tasks, 1, NAME, 0, 100);
	begin(&tasks, 2, OTHER, 0, 110);
	turn(&tasks, &thread, 1, 1000, 200);
	turn(&tasks, &thread, 2, 1030, 250);
	turn(&tasks, &thread, 1, 1070, 300);
	turn(&tasks, &thread, 0, 1075, 310);
	turn(&tasks, &thread, 0, 9000, 9000);
	torsh_tasks_wait(&tasks, &thread, 7);
	assert_int_equal(tasks.items[0].sum.cpu_ns, 35);
	assert_int_equal(tasks.items[0].sum.run_ns, 60);
	assert_int_equal(tasks.items[0].sum.turns, 2);
	assert_int_equal(tasks.items[1].sum.cpu_ns, 40);
	assert_int_equal(tasks.items[1].sum.run_ns, 50);
	assert_int_equal(tasks.items[0].sum.waits + tasks.items[1].sum.waits, 0);
	turn(&tasks, &thread, 2, 9000, 9000);
	torsh_tasks_wait(&tasks, &thread, 7);
	assert_int_equal(tasks.items[1].sum.wait_ns, 7);
	turn(&tasks, &thread, 99, 9001, 9001);
	assert_int_equal(tasks.n_unknown, 1);
	assert_int_equal(thread.current, 0);
	torsh_tasks_destroy(&tasks);
}

static void blocks_count_for_the_task_that_allocated_them_whoever_frees_them(void **state)
{
	struct tasks tasks = {0};
	struct task_thread thread = {0}, other = {0};

	(void)state;
	begin(&tasks, 1, NAME, 0, 0);
	begin(&tasks, 2, OTHER, 0, 0);
	turn(&tasks, &thread, 1, 0, 0);
	torsh_tasks_alloc(&tasks, &thread, 0x1000, 100);
	torsh_tasks_alloc(&tasks, &thread, 0x2000, 1 << 20);
	turn(&tasks, &thread, 2, 0, 0);
	torsh_tasks_alloc(&tasks, &thread, 0x3000, 5);
	torsh_tasks_free(&tasks, 0x1000);
	/* Nobody's: at an address of another. */
	torsh_tasks_alloc(&tasks, &other, 0x3000, 9);
	assert_int_equal(tasks.items[0].sum.alloc_bytes, 100 + (1 << 20));
	assert_int_equal(tasks.items[0].live_bytes, 1 << 20);
	assert_int_equal(tasks.items[0].live_blocks, 1);
	assert_int_equal(tasks.items[0].peak_bytes, 100 + (1 << 20));
	assert_int_equal(tasks.items[1].sum.alloc_bytes, 5);
	assert_int_equal(tasks.items[1].live_blocks, 0);
	torsh_tasks_end(&tasks, 1, 50);
	torsh_tasks_free(&tasks, 0x2000);
	assert_int_equal(tasks.items[0].end_bytes, 1 << 20);
	assert_int_equal(tasks.items[0].live_bytes, 0);
	torsh_tasks_destroy(&tasks);
}

static void a_resized_block_moves_to_the_task_that_resized_it(void **state)
{
	struct tasks tasks = {0};
	struct task_thread thread = {0};

	(void)state;
	begin(&tasks, 1, NAME, 0, 0);
	begin(&tasks, 2, OTHER, 0, 0);
	turn(&tasks, &thread, 1, 0, 0);
	torsh_tasks_alloc(&tasks, &thread, 0x1000, 100);
	turn(&tasks, &thread, 2, 0, 0);
	torsh_tasks_resize(&tasks, &thread, 0x1000);
	assert_int_equal(tasks.items[0].live_bytes, 100);
	torsh_tasks_alloc(&tasks, &thread, 0x1000, 150);
	assert_int_equal(tasks.items[0].live_bytes, 0);
	assert_int_equal(tasks.items[1].live_bytes, 150);
	torsh_tasks_resize(&tasks, &thread, 0x1000);
	torsh_tasks_not_resized(&tasks, &thread, true);
	assert_int_equal(tasks.items[1].live_bytes, 150);
	torsh_tasks_free(&tasks, 0x1000);
	assert_int_equal(tasks.items[1].live_blocks, 0);
	torsh_tasks_alloc(&tasks, &thread, 0x1000, 1);
	torsh_tasks_resize(&tasks, &thread, 0x1000);
	torsh_tasks_not_resized(&tasks, &thread, false);
	assert_int_equal(tasks.items[1].live_blocks, 0);
	/* One that is not known. */
	torsh_tasks_resize(&tasks, &thread, 0x5000);
	torsh_tasks_alloc(&tasks, &thread, 0x5000, 8);
	assert_int_equal(tasks.items[1].live_bytes, 8);
	torsh_tasks_destroy(&tasks);
}

static void a_task_counts_for_the_request_in_which_it_began(void **state)
{
	struct tasks tasks = {0};
	struct task_thread thread = {0};

	(void)state;
	begin(&tasks, 1, NAME, 0, 0);
	begin(&tasks, 2, NAME, 1, 0);
	begin(&tasks, 3, INNER, 2, 0);
	turn(&tasks, &thread, 3, 10, 10);
	torsh_tasks_alloc(&tasks, &thread, 0x1000, 100);
	turn(&tasks, &thread, 1, 15, 16);
	turn(&tasks, &thread, 0, 16, 18);
	assert_int_equal(tasks.items[0].sum.cpu_ns, 6);
	assert_int_equal(tasks.items[1].sum.cpu_ns, 5);
	assert_int_equal(tasks.items[2].sum.cpu_ns, 5);
	assert_int_equal(tasks.items[0].live_bytes, 100);
	/* The name that two of them have gets it once. */
	assert_int_equal(tasks.names.n, 2);
	assert_int_equal(tasks.names.items[0].sum.alloc_bytes, 100);
	assert_int_equal(tasks.names.items[0].sum.cpu_ns, 6);
	assert_int_equal(tasks.names.items[1].sum.cpu_ns, 5);
	torsh_tasks_destroy(&tasks);
}

static void what_follows_a_response_is_not_of_its_request(void **state)
{
	struct tasks tasks = {0};
	struct task_thread thread = {0};

	(void)state;
	torsh_tasks_begin(&tasks,
			  &(struct event_task){.number = 1, .kind = TASK_HTTP, .name = NAME}, 0);
	turn(&tasks, &thread, 1, 0, 0);
	torsh_tasks_alloc(&tasks, &thread, 0x1000, 1);
	torsh_tasks_end(&tasks, 1, 10);
	torsh_tasks_alloc(&tasks, &thread, 0x2000, 2);
	turn(&tasks, &thread, 0, 100, 100);
	assert_int_equal(tasks.items[0].sum.alloc_bytes, 1);
	assert_int_equal(tasks.items[0].sum.cpu_ns, 0);
	torsh_tasks_begin(
		&tasks,
		&(struct event_task){
			.number = 1, .kind = TASK_HTTP, .trace_low = 5, .flags = TASK_IS_SHARED},
		20);
	assert_int_equal(tasks.n, 1);
	assert_int_equal(tasks.items[0].trace_low, 5);
	assert_int_equal(tasks.names.items[0].n_shared, 1);
	torsh_tasks_destroy(&tasks);
}

#define MANY 100000u

static void many_requests_are_few_items_and_all_count(void **state)
{
	struct tasks tasks = {0};
	struct task_thread thread = {0};
	uint64_t slowest = 0, kept = 0;

	(void)state;
	for (uint64_t i = 1; i <= MANY; i++) {
		uint64_t took = i == 77 ? 1000000 : i % 100 + 1;

		begin(&tasks, i, NAME, 0, i * 1000);
		turn(&tasks, &thread, i, i, i);
		torsh_tasks_alloc(&tasks, &thread, i * 16, 8);
		if (i % 10000)
			torsh_tasks_free(&tasks, i * 16);
		turn(&tasks, &thread, 0, i, i);
		torsh_tasks_end(&tasks, i, i * 1000 + took);
	}
	assert_int_equal(tasks.names.items[0].n_ended, MANY);
	assert_int_equal(tasks.names.items[0].sum.alloc_bytes, MANY * 8);
	assert_true(tasks.n <= TASKS_KEPT_MAX + 1);
	assert_int_equal(tasks.n - tasks.n_free + tasks.n_removed, MANY);
	for (uint32_t i = 0; i < tasks.n; i++) {
		uint64_t took = tasks.items[i].end_ns - tasks.items[i].begin_ns;

		slowest = took > slowest ? took : slowest;
		kept += tasks.items[i].live_blocks;
	}
	assert_int_equal(slowest, 1000000);
	assert_int_equal(kept, MANY / 10000);
	torsh_tasks_destroy(&tasks);
}

static void buckets_are_within_one_percent(void **state)
{
	(void)state;
	for (uint64_t ns = 0; ns < UINT64_MAX / 32; ns = ns < 200 ? ns + 1 : ns * 17 / 16 + 1) {
		uint32_t bucket = torsh_task_bucket(ns);
		double is = (double)torsh_task_bucket_ns(bucket), was = (double)ns;

		assert_true(bucket < TASK_BUCKETS);
		assert_true(is >= was * 0.99 && is <= was * 1.01);
	}
	assert_true(torsh_task_bucket(UINT64_MAX) < TASK_BUCKETS);
	assert_true(torsh_task_bucket_ns(torsh_task_bucket(UINT64_MAX)) > UINT64_MAX / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_are_charged_to_the_task_that_had_the_thread),
		cmocka_unit_test(blocks_count_for_the_task_that_allocated_them_whoever_frees_them),
		cmocka_unit_test(a_resized_block_moves_to_the_task_that_resized_it),
		cmocka_unit_test(a_task_counts_for_the_request_in_which_it_began),
		cmocka_unit_test(what_follows_a_response_is_not_of_its_request),
		cmocka_unit_test(many_requests_are_few_items_and_all_count),
		cmocka_unit_test(buckets_are_within_one_percent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
