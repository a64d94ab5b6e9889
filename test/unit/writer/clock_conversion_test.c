/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The writer's clock when the counter is set back, or jumps ahead: its peak tracker goes on as
 * CLOCK_MONOTONIC does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "tools/writer/input/clock_conversion.h"

#define TICKS_A_US 2500u
#define BEGIN (UINT64_C(1) << 50)
#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define NEAR_NS MS

static uint64_t now_ns, moved; /* the counter is that much beyond its rate, modulo 2^64 */

static uint64_t ticks_of_ns(uint64_t ns)
{
	return ns / 1000 * TICKS_A_US;
}

static uint64_t fake_counter(void)
{
	return BEGIN + ticks_of_ns(now_ns) + moved;
}

static int fake_clock(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){.tv_sec = (time_t)(now_ns / S), .tv_nsec = (long)(now_ns % S)};
	return 0;
}

/* In place of the library's, with stand-ins for both clocks. */
#define torsh_clock_ticks fake_counter
#define clock_gettime fake_clock
#include "tools/writer/input/clock_conversion.c"

static struct clock_rate rate;
static _Atomic uint64_t lift;
static struct clock_conversion target;

static enum clock_jump pass(uint64_t ns)
{
	now_ns += ns;
	return torsh_clock_rate_measure(&rate).jump;
}

static int begin(void **state)
{
	(void)state;
	moved = 0;
	now_ns = 1000 * S;
	atomic_store(&lift, 0);
	torsh_clock_rate_start(&rate);
	target = (struct clock_conversion){
		.rate = &rate, .start_ticks = fake_counter(), .start_ns = now_ns, .lift = &lift};
	now_ns += MS;
	torsh_clock_rate_fix(&rate);
	target.start_rate_ns = torsh_clock_rate_ns(&rate, target.start_ticks);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(pass(100 * MS), CLOCK_JUMP_NONE);
	return 0;
}

static int end(void **state)
{
	(void)state;
	torsh_clock_rate_destroy(&rate);
	return 0;
}

static void expect_near(uint64_t found_ns, uint64_t ns)
{
	assert_true(found_ns + NEAR_NS > ns && found_ns < ns + NEAR_NS);
}

static uint64_t stamp_now(void)
{
	return (fake_counter() + torsh_clock_lift(&target)) >> CHANNEL_STAMP_SHIFT;
}

static void set_back_it_goes_on(void **state)
{
	uint64_t before = stamp_now();

	(void)state;
	for (uint32_t i = 1; i < 50; i++) {
		moved -= ticks_of_ns(3 * i * S);
		assert_int_equal(pass(200 * MS), CLOCK_JUMP_BACK);
		assert_true(stamp_now() > before);
		expect_near(torsh_clock_to_ns(&target, stamp_now()), now_ns);
		assert_int_equal(pass(100 * MS), CLOCK_JUMP_NONE);
		before = stamp_now();
	}
	expect_near((uint64_t)((double)ticks_of_ns(S) * rate.ns_per_tick), S);
}

#define N_JUMPS 300u

static void ahead_is_left_out_of_the_time(void **state)
{
	uint64_t before_ns = now_ns, before = stamp_now(), stamps[N_JUMPS], times_ns[N_JUMPS];

	(void)state;
	for (uint32_t i = 0; i < N_JUMPS; i++) {
		moved += ticks_of_ns(3600 * S);
		assert_int_equal(pass(200 * MS), CLOCK_JUMP_AHEAD);
		expect_near(torsh_clock_to_ns(&target, stamp_now()), now_ns);
		assert_int_equal(pass(100 * MS), CLOCK_JUMP_NONE);
		stamps[i] = stamp_now();
		times_ns[i] = now_ns;
	}
	expect_near(torsh_clock_to_ns(&target, before), before_ns);
	for (uint32_t i = 0; i < N_JUMPS; i++)
		expect_near(torsh_clock_to_ns(&target, stamps[i]), times_ns[i]);
}

/* What the targets read: as far as the counter would be. */
static void it_is_published_as_if_nothing_had_been(void **state)
{
	struct clock_reference reference = {0};
	struct clock_moment known;
	uint64_t doubt;

	(void)state;
	moved -= ticks_of_ns(5000 * S);
	assert_int_equal(pass(200 * MS), CLOCK_JUMP_BACK);
	torsh_clock_rate_publish(&rate, 0, &reference);
	known = torsh_clock_read(&reference);
	assert_true(torsh_clock_missing(&known, fake_counter(), now_ns, &doubt) >
		    ticks_of_ns(4999 * S));
	assert_int_equal(torsh_clock_missing(&known, fake_counter() + rate.lift, now_ns, &doubt),
			 0);
	/* A process that begins now. */
	torsh_clock_rate_publish(&rate, rate.lift, &reference);
	known = torsh_clock_read(&reference);
	assert_int_equal(torsh_clock_missing(&known, fake_counter(), now_ns, &doubt), 0);
}

#define N_READINGS 400u
#define PER_READING 8u

/* A counter that is slower and faster by turns, by up to half a per mille. */
static void a_stamp_has_one_time(void **state)
{
	static uint64_t stamps[N_READINGS * PER_READING], times_ns[N_READINGS * PER_READING];
	uint32_t n = 0;

	(void)state;
	for (uint32_t i = 0; i < N_READINGS; i++) {
		for (uint32_t k = 0; k < PER_READING; k++, n++) {
			now_ns += 12500 * 1000;
			moved += (uint64_t)((int64_t)(i / 50 % 2 ? 15 : -15) * 1000);
			stamps[n] = stamp_now();
			times_ns[n] = torsh_clock_to_ns(&target, stamps[n]);
			expect_near(times_ns[n], now_ns);
		}
		assert_int_equal(pass(0), CLOCK_JUMP_NONE);
	}
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(torsh_clock_to_ns(&target, stamps[i]), times_ns[i]);
		assert_true(!i || times_ns[i] > times_ns[i - 1]);
	}
	assert_true(rate.n_pieces > 4 && rate.n_pieces < 2 * N_READINGS);
}

/* Neighbouring stamps around each edge of a piece. */
static void the_conversion_rises(void **state)
{
	a_stamp_has_one_time(state);
	for (uint32_t i = 0; i < rate.n_pieces; i++) {
		uint64_t ticks = rate.pieces[i].ticks, before = 0;

		for (uint64_t k = 0; k < 64; k++) {
			uint64_t ns = torsh_clock_rate_ns(&rate, ticks - 32 + k);

			assert_true(ns >= before && (!before || ns - before < 10));
			before = ns;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(set_back_it_goes_on, begin, end),
		cmocka_unit_test_setup_teardown(ahead_is_left_out_of_the_time, begin, end),
		cmocka_unit_test_setup_teardown(a_stamp_has_one_time, begin, end),
		cmocka_unit_test_setup_teardown(the_conversion_rises, begin, end),
		cmocka_unit_test_setup_teardown(it_is_published_as_if_nothing_had_been, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
