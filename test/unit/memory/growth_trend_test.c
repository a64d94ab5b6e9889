/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which series go on growing: leaks do, whatever their rhythm; what is bounded does not. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "tools/memory/growth/growth_trend.h"

#define N_MAX 64u
#define RUNS 2000u
#define STEPS 960.0 /* of a run; there are 8 to 64 samples */

static uint64_t seed;

/* Between -1 and 1. */
static double noise(void)
{
	return (double)(random_next(&seed) >> 11) / (double)(UINT64_C(1) << 52) - 1;
}

struct series {
	double x[N_MAX], y[N_MAX];
	size_t n;
};

/* Returns the live bytes after so many steps. */
typedef double live_after(double steps);

static double linear(double steps)
{
	return 5000 * steps;
}

static double every_fortieth(double steps)
{
	return 7000 * floor(steps / 40);
}

static double a_bit_beside_much(double steps)
{
	return 1e9 + 16 * steps;
}

static double noisy(double steps)
{
	return 5000 * steps + 400000 * noise();
}

static double after_a_warm_up(double steps)
{
	return 5e7 * fmin(steps / 50, 1) + 5000 * steps;
}

static double faster_and_faster(double steps)
{
	return steps * steps;
}

static double from_a_third_on(double steps)
{
	return 5000 * fmax(steps - STEPS / 3, 0);
}

static double a_list_that_grows_by_an_eighth(double steps)
{
	return 64 * pow(1.125, floor(log(steps + 8) / log(1.125)));
}

static double with_a_sawtooth(double steps)
{
	return 5000 * steps + 20000 * fmod(steps, 50);
}

static double constant(double steps)
{
	(void)steps;
	return 1e6;
}

static double full_ring(double steps)
{
	return 100 * fmin(steps, 600);
}

static double full_late(double steps)
{
	return 100 * fmin(steps, 860);
}

static double filled_at_random(double steps)
{
	return 1e6 * (1 - exp(-steps / 300));
}

static double emptied(double steps)
{
	return 4000 * fmod(steps, 130);
}

static double emptied_once(double steps)
{
	return 4000 * fmod(steps, 600);
}

static double filled_in_the_middle(double steps)
{
	return 4000 * fmin(fmax(steps - 300, 0), 200);
}

static double jumps_late(double steps)
{
	return steps < 650 ? 1e6 : 3e6;
}

static double jumps_twice(double steps)
{
	return 1e6 * ((steps > 500) + (steps > 800));
}

static double only_noise(double steps)
{
	(void)steps;
	return 1e6 + 1e5 * noise();
}

static double goes_down(double steps)
{
	return 1e6 - 100 * steps;
}

static double up_and_down(double steps)
{
	return 1e6 * (1 + sin(steps / 150));
}

static double full_ring_of_many_sizes(double steps)
{
	return 1000 * fmin(steps, 200) + (steps > 200 ? 4000 * noise() : 0);
}

static void sample(struct series *series, size_t n, live_after *after)
{
	series->n = n;
	for (size_t i = 0; i < n; i++) {
		series->x[i] = STEPS * (double)(i + 1) / (double)n;
		series->y[i] = after(series->x[i]);
	}
}

static bool goes_on(size_t n, live_after *after)
{
	struct series series;

	sample(&series, n, after);
	return torsh_growth_goes_on(series.x, series.y, series.n);
}

static void leaks_go_on(void **state)
{
	live_after *const leaks[] = {linear,
				     every_fortieth,
				     a_bit_beside_much,
				     noisy,
				     after_a_warm_up,
				     faster_and_faster,
				     from_a_third_on,
				     a_list_that_grows_by_an_eighth,
				     with_a_sawtooth};

	(void)state;
	for (size_t i = 0; i < sizeof(leaks) / sizeof(*leaks); i++) {
		for (size_t n = 32; n <= N_MAX; n++) {
			if (!goes_on(n, leaks[i]))
				fail_msg("leak %zu is not seen in %zu samples", i, n);
		}
	}
	for (size_t n = GROWTH_SAMPLES_MIN; n <= N_MAX; n++)
		assert_true(goes_on(n, linear));
}

static void what_is_bounded_does_not_go_on(void **state)
{
	live_after *const bounded[] = {constant,
				       full_ring,
				       full_late,
				       filled_at_random,
				       emptied,
				       emptied_once,
				       jumps_late,
				       filled_in_the_middle,
				       jumps_twice,
				       only_noise,
				       goes_down,
				       up_and_down,
				       full_ring_of_many_sizes};

	(void)state;
	for (size_t i = 0; i < sizeof(bounded) / sizeof(*bounded); i++) {
		for (size_t n = 32; n <= N_MAX; n++) {
			if (goes_on(n, bounded[i]))
				fail_msg("series %zu grows in %zu samples", i, n);
		}
	}
}

static void few_samples_decide_nothing(void **state)
{
	(void)state;
	for (size_t n = 0; n < GROWTH_SAMPLES_MIN; n++)
		assert_false(goes_on(n, linear));
}

/* Each run another one of its kind. */
static void make_random_leak(struct series *series)
{
	double live = 0;

	series->n = N_MAX;
	for (size_t i = 0; i < N_MAX; i++) {
		series->x[i] = (double)i;
		for (int k = 0; k < 4; k++)
			live += noise() > 0.2 ? 1000 : 0;
		series->y[i] = live + 1000 * noise();
	}
}

/* A ring whose entries have many sizes. */
static void make_ring(struct series *series)
{
	double entries[16] = {0}, live = 0;

	series->n = N_MAX;
	for (size_t i = 0; i < 2 * (size_t)N_MAX; i++) {
		double *entry = &entries[i % 16];

		live -= *entry;
		*entry = 1000 + 1000 * noise();
		live += *entry;
		series->x[i / 2] = (double)(i / 2);
		series->y[i / 2] = live;
	}
}

/* A cache that drops entries at random. */
static void make_cache(struct series *series)
{
	double live = 0;

	series->n = N_MAX;
	for (size_t i = 0; i < N_MAX; i++) {
		live += 10 - live * (0.15 + 0.1 * noise());
		series->x[i] = (double)i;
		series->y[i] = live;
	}
}

/* A queue that is as often longer than before as shorter. */
static void make_queue(struct series *series)
{
	double live = 100;

	series->n = N_MAX;
	for (size_t i = 0; i < N_MAX; i++) {
		live = fabs(live + 5 * noise());
		series->x[i] = (double)i;
		series->y[i] = live;
	}
}

static unsigned count(void make(struct series *series))
{
	struct series series;
	unsigned n = 0;

	seed = 1;
	for (unsigned i = 0; i < RUNS; i++) {
		make(&series);
		n += torsh_growth_goes_on(series.x, series.y, series.n);
	}
	return n;
}

static void chance_decides_next_to_nothing(void **state)
{
	(void)state;
	assert_in_range(count(make_random_leak), RUNS - RUNS / 200, RUNS);
	assert_in_range(count(make_ring), 0, 0);
	assert_in_range(count(make_cache), 0, RUNS / 1000);
	assert_in_range(count(make_queue), 0, RUNS / 20);
}

static void slopes_have_their_errors(void **state)
{
	struct growth_slope line;
	struct series series;
	unsigned n_within = 0;

	(void)state;
	sample(&series, N_MAX, linear);
	line = torsh_growth_slope(series.x, series.y, series.n);
	assert_true(fabs(line.slope - 5000) < 1e-6 && line.error < 1e-6);
	seed = 1;
	for (unsigned i = 0; i < RUNS; i++) {
		sample(&series, N_MAX, noisy);
		line = torsh_growth_slope(series.x, series.y, series.n);
		n_within += fabs(line.slope - 5000) < 2 * line.error;
	}
	/* 95 %, and more as correlation by chance only makes errors larger. */
	assert_in_range(n_within, RUNS * 93 / 100, RUNS * 995 / 1000);
	line = torsh_growth_slope((double[]){1, 1, 1}, (double[]){1, 2, 3}, 3);
	assert_true(line.slope == 0 && line.error == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaks_go_on),
		cmocka_unit_test(what_is_bounded_does_not_go_on),
		cmocka_unit_test(few_samples_decide_nothing),
		cmocka_unit_test(chance_decides_next_to_nothing),
		cmocka_unit_test(slopes_have_their_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
