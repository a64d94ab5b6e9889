/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The counter is set back, as by a suspend, while threads hand a baton on: none may stamp below
 * what any allocation site stamped before, and time goes on. The counter is a stand-in: the
 * processor's, less what it was set back by.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "shim/sys.h"
#include "test/unit/fixtures/random.h"
#include "test/unit/fixtures/sanitized.h"

#define BEGIN (UINT64_C(1) << 61) /* a counter is above 0, however far it is set back */

static _Atomic uint64_t set_back;

static inline uint64_t read_counter(void)
{
	return BEGIN + torsh_cpu_ticks() - atomic_load_explicit(&set_back, memory_order_relaxed);
}

static inline uint64_t read_counter_ordered(void)
{
	return BEGIN + torsh_cpu_ticks_ordered() -
	       atomic_load_explicit(&set_back, memory_order_relaxed);
}

#define torsh_cpu_ticks read_counter
#define torsh_cpu_ticks_ordered read_counter_ordered
#include "agent/producer/counter.h"
#include "agent/producer/producer.h"
/* Last, with the stand-in: it takes the place of the library's. */
#include "agent/producer/stamp.c"

#define N_THREADS 2u
#define N_RESETS UNLESS_SANITIZED(100u, 30u)
#define TURNS_A_RESET 1000u /* at most */
#define LONGEST_NS UINT64_C(2000000000)
#define LONGEST_WORK 600u
#define NOBODY N_THREADS
#define ONE_MOMENT_TICKS 4096u

static _Atomic uint64_t counters[N_COUNTERS];
_Atomic uint64_t *torsh_counters = counters;

static struct producer producers[N_THREADS];
static struct clock_reference published;
static _Atomic uint64_t lift;
static uint64_t ticks_a_second;

static _Atomic uint32_t site;
static uint64_t latest, n_violations, n_still;
static _Atomic uint32_t n_turns;
static uint32_t burst_max;

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * CLOCK_NS_A_SECOND + (uint64_t)now.tv_nsec;
}

/* Both clocks at one moment, as the writer reads them. */
static void read_both(uint64_t *ticks, uint64_t *ns)
{
	uint64_t before;

	do {
		before = torsh_cpu_ticks_ordered();
		*ns = monotonic_ns();
		*ticks = torsh_cpu_ticks_ordered();
	} while (*ticks - before > ONE_MOMENT_TICKS);
}

static void measure_rate(void)
{
	uint64_t begin_ticks, begin_ns, ticks, ns;

	read_both(&begin_ticks, &begin_ns);
	do
		read_both(&ticks, &ns);
	while (ns - begin_ns < 50000000);
	ticks_a_second = (uint64_t)((double)(ticks - begin_ticks) / (double)(ns - begin_ns) * 1e9);
}

static void publish_with(uint64_t more)
{
	uint64_t ticks, ns;

	read_both(&ticks, &ns);
	torsh_clock_publish(&published, ticks + more, ns, ticks_a_second);
}

/* The writer counts on as if nothing had been set back. */
static void publish(void)
{
	publish_with(atomic_load(&set_back));
}

static void begin(void)
{
	atomic_store(&set_back, 0);
	atomic_store(&lift, 0);
	atomic_store(&torsh_stamp_owner, 0);
	atomic_store(&ahead, 0);
	for (uint32_t i = 0; i < N_THREADS; i++)
		producers[i].codec.stamp = 0;
	latest = n_violations = n_still = 0;
	atomic_store(&n_turns, 0);
	torsh_stamp_use(&lift, &published, false);
	publish();
}

static uint64_t stamp(struct producer *producer)
{
	uint64_t now = torsh_producer_stamp(producer);

	n_still += now == producer->codec.stamp;
	producer->codec.stamp = now;
	n_violations += now < latest;
	latest = now;
	return now;
}

/* A second and more: up to half a year. */
static void set_counter_back(uint64_t *random)
{
	uint64_t by = ticks_a_second;

	for (uint64_t n = random_below(random, 24); n; n--)
		by *= 2;
	publish();
	atomic_fetch_add(&set_back, by);
}

static void work(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		__asm__ volatile("" : : "r"(i));
}

static void *run(void *argument)
{
	uint32_t self = (uint32_t)(uintptr_t)argument;
	uint64_t random = self + burst_max;

	for (;;) {
		uint32_t now;

		while ((now = atomic_load_explicit(&site, memory_order_acquire)) != self &&
		       now != NOBODY)
			torsh_cpu_pause();
		if (now == NOBODY)
			return NULL;
		for (uint64_t n = 1 + random_below(&random, burst_max); n; n--)
			stamp(&producers[self]);
		atomic_fetch_add_explicit(&n_turns, 1, memory_order_relaxed);
		now = self;
		atomic_compare_exchange_strong_explicit(&site, &now,
							(uint32_t)random_below(&random, N_THREADS),
							memory_order_release, memory_order_relaxed);
		work(random_below(&random, LONGEST_WORK));
	}
}

/* While the others hand the baton on, at no moment of theirs. */
static void set_back_at_random(uint64_t until_ns)
{
	uint64_t random = until_ns;

	for (uint32_t i = 0; i < N_RESETS && monotonic_ns() < until_ns; i++) {
		uint32_t begin_turn = atomic_load(&n_turns),
			 n = (uint32_t)random_below(&random, TURNS_A_RESET);

		while (atomic_load(&n_turns) - begin_turn < n && monotonic_ns() < until_ns)
			torsh_cpu_pause();
		work(random_below(&random, LONGEST_WORK));
		set_counter_back(&random);
	}
}

static void pass_the_baton(uint32_t longest_burst)
{
	pthread_t threads[N_THREADS];

	begin();
	burst_max = longest_burst;
	atomic_store(&site, 0);
	for (uint32_t i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, run, (void *)(uintptr_t)i), 0);
	set_back_at_random(monotonic_ns() + LONGEST_NS);
	atomic_store(&site, NOBODY);
	for (uint32_t i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < N_THREADS; i++)
		stamp(&producers[i]);
	assert_int_equal(n_violations, 0);
	assert_true(atomic_load(&lift) >= atomic_load(&set_back));
}

static void turns_are_in_order(void **state)
{
	(void)state;
	pass_the_baton(1);
	pass_the_baton(200);
}

static void time_goes_on(void **state)
{
	uint64_t before, random = 1;

	(void)state;
	begin();
	before = stamp(&producers[0]);
	for (uint32_t i = 0; i < 100; i++) {
		set_counter_back(&random);
		for (uint32_t n = 0; n < 100; n++)
			stamp(&producers[n & 1]);
		assert_true(latest > before);
		before = latest;
	}
	/* Two readings may fall into one stamp; of a hundred after each reset that is few. */
	assert_true(n_still < 5000);
	assert_int_equal(n_violations, 0);
}

/* It was silent for so long that the counter is above its last stamp when it stamps again. */
static void one_that_was_silent_is_in_order(void **state)
{
	(void)state;
	begin();
	atomic_store(&set_back, ticks_a_second * 1000);
	publish_with(0);
	stamp(&producers[0]);
	stamp(&producers[1]);
	atomic_store(&set_back, 0);
	publish_with(0);
	stamp(&producers[1]);
	/* Between its stamp and the other's. */
	atomic_store(&set_back, ticks_a_second * 500);
	stamp(&producers[0]);
	assert_int_equal(n_violations, 0);
	assert_true(atomic_load(&lift) > 0);
}

static void without_a_reference_it_stands_still(void **state)
{
	uint64_t before;

	(void)state;
	begin();
	torsh_stamp_use(&lift, NULL, false);
	before = stamp(&producers[0]);
	atomic_store(&set_back, ticks_a_second);
	assert_int_equal(stamp(&producers[0]), before);
	/* Then the writer has published. */
	torsh_stamp_use(&lift, &published, false);
	publish();
	assert_true(stamp(&producers[0]) > before);
}

static int setup(void **state)
{
	(void)state;
	measure_rate();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_are_in_order),
		cmocka_unit_test(time_goes_on),
		cmocka_unit_test(one_that_was_silent_is_in_order),
		cmocka_unit_test(without_a_reference_it_stands_still),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
