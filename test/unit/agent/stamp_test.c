/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Readings of the counter are ordered as causes are: threads hand a baton on through memory, and
 * none of them may read a time below that of whoever had it before.
 */
#include <stdbool.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "agent/producer/producer.h"
#include "test/unit/fixtures/random.h"
#include "test/unit/fixtures/sanitized.h"

#define N_THREADS 2u
/* or as many as there are in so long, where the threads must share a CPU */
#define N_TURNS UNLESS_SANITIZED(1000000u, 100000u)
#define LONGEST_NS UINT64_C(5000000000)
#define LONGEST_WORK 600u

static struct producer producers[N_THREADS];

/*
 * Who has it, and the latest time that any allocation site read. The time belongs to the allocation
 * site.
 */
static _Atomic uint32_t site;
static uint64_t latest;
static uint64_t n_turns, n_violations, end_ns;
static uint32_t burst_max;

static void read_times(const struct producer *producer, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t now = torsh_stamp_ticks(producer);

		n_violations += now < latest;
		latest = now;
	}
}

/*
 * So that the baton has often come already when it is looked for, and the processor expects it to.
 */
static void work(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		__asm__ volatile("" : : "r"(i));
}

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/*
 * Asked rarely, so that turns stay as short as they are; where threads share a CPU each turn is
 * long.
 */
static bool is_over(void)
{
	return (n_turns < 1000 || n_turns % 1024 == 0) && monotonic_ns() > end_ns;
}

/* Waits without a system call, which would order the counter by itself. */
static void *run(void *argument)
{
	uint32_t self = (uint32_t)(uintptr_t)argument;
	uint64_t random = self + 1;

	for (;;) {
		uint32_t now;

		while ((now = atomic_load_explicit(&site, memory_order_acquire)) != self &&
		       now != N_THREADS)
			torsh_cpu_pause();
		if (now == N_THREADS)
			return NULL;
		read_times(&producers[self], 1 + (uint32_t)(random_below(&random, burst_max)));
		atomic_store_explicit(&site,
				      ++n_turns < N_TURNS && !is_over() ? (self + 1) % N_THREADS
									: N_THREADS,
				      memory_order_release);
		work(random_below(&random, LONGEST_WORK));
	}
}

static void pass_the_baton(uint32_t longest_burst)
{
	pthread_t threads[N_THREADS];

	latest = n_turns = n_violations = 0;
	burst_max = longest_burst;
	end_ns = monotonic_ns() + LONGEST_NS;
	atomic_store(&site, 0);
	for (uint32_t i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i), 0);
	for (uint32_t i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_true(n_turns > N_THREADS);
	assert_int_equal(n_violations, 0);
}

static void short_turns_are_in_order(void **state)
{
	(void)state;
	pass_the_baton(1);
}

static void turns_of_any_length_are_in_order(void **state)
{
	(void)state;
	pass_the_baton(200);
}

static void one_producer_alone_owns(void **state)
{
	(void)state;
	/* Whatever was shared is not for ever. */
	for (uint64_t i = 0; atomic_load(&torsh_stamp_owner) != (uintptr_t)&producers[0]; i++) {
		torsh_stamp_ticks(&producers[0]);
		assert_true(i < 1000000000);
	}
	torsh_stamp_disown(&producers[1]);
	assert_int_equal(atomic_load(&torsh_stamp_owner), (uintptr_t)&producers[0]);
	torsh_stamp_disown(&producers[0]);
	assert_int_equal(atomic_load(&torsh_stamp_owner), 0);
}

static void frequent_changes_end_in_sharing(void **state)
{
	uint64_t i = 0;

	(void)state;
	while (!(atomic_load(&torsh_stamp_owner) & 1)) {
		torsh_stamp_ticks(&producers[i++ % 2]);
		assert_true(i < 1000000000);
	}
	assert_true(atomic_load(&torsh_stamp_owner) >> 1 > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_turns_are_in_order),
		cmocka_unit_test(turns_of_any_length_are_in_order),
		cmocka_unit_test(one_producer_alone_owns),
		cmocka_unit_test(frequent_changes_end_in_sharing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
