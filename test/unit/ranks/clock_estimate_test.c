/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Clocks and networks here are simulated: the truth is known to the nanosecond. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tools/ranks/clocks/clock_estimate.h"

#define S INT64_C(1000000000)
#define MS INT64_C(1000000)
#define US INT64_C(1000)
#define N_EXCHANGES 600
#define EVERY_NS (S / 2)
#define RUN_NS (N_EXCHANGES * EVERY_NS)
#define N_HOSTS 1000
#define N_LOOKS 200

static uint64_t random_state = 20261129;

static double uniform(double low, double high)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return low + (high - low) * (double)(random_state >> 11) / 9007199254740992.0;
}

static double exponential(double mean)
{
	return -mean * log(1 - uniform(0, 1));
}

/* Another host's clock, less ours, and the network to it. */
struct host {
	double offset_ns, drift, wander_ns, period_s, phase; /* a crystal that gets warm and cold */
	int64_t step_at_ns, rate_at_ns; /* of NTP; INT64_MAX: never */
	double step_ns, rate;
	double there_ns, back_ns, jitter_ns, burst_ns, burst_share;
};

static double truth(const struct host *host, int64_t at_ns)
{
	double t = (double)at_ns,
	       offset = host->offset_ns + host->drift * t +
			host->wander_ns * sin(t / S / host->period_s * 2 * M_PI + host->phase);

	if (at_ns >= host->step_at_ns)
		offset += host->step_ns;
	if (at_ns >= host->rate_at_ns)
		offset += host->rate * (double)(at_ns - host->rate_at_ns);
	return offset;
}

static int64_t delay(const struct host *host, double least_ns)
{
	double queue =
		exponential(uniform(0, 1) < host->burst_share ? host->burst_ns : host->jitter_ns);

	return (int64_t)(least_ns + queue);
}

static int64_t read_other(const struct host *host, int64_t at_ns)
{
	return at_ns + (int64_t)llround(truth(host, at_ns));
}

static struct clock_exchange exchange_at(const struct host *host, int64_t at_ns)
{
	int64_t there_ns = at_ns + delay(host, host->there_ns);
	int64_t answer_ns = there_ns + (int64_t)uniform(2000, 20000);

	return (struct clock_exchange){
		.sent_ns = at_ns,
		.received_ns = read_other(host, there_ns),
		.replied_ns = read_other(host, answer_ns),
		.returned_ns = answer_ns + delay(host, host->back_ns),
	};
}

static struct clock_estimate *probe(const struct host *host)
{
	struct clock_exchange exchanges[N_EXCHANGES];

	for (int i = 0; i < N_EXCHANGES; i++)
		exchanges[i] = exchange_at(host, i * EVERY_NS + (int64_t)uniform(0, 1e8));
	return torsh_clock_estimate_create(exchanges, N_EXCHANGES);
}

static struct host quiet_host(void)
{
	return (struct host){.offset_ns = 11.56e9,
			     .period_s = 600,
			     .step_at_ns = INT64_MAX,
			     .rate_at_ns = INT64_MAX,
			     .there_ns = 20e3,
			     .back_ns = 20e3,
			     .jitter_ns = 5e3};
}

/* How far the estimate is from the truth, in ns; fails if that is more than it states. */
static double error_at(const struct host *host, const struct clock_estimate *estimate,
		       int64_t at_ns, struct clock_offset *offset)
{
	double error;

	assert_true(torsh_clock_estimate_at(estimate, at_ns, offset));
	error = fabs((double)offset->offset_ns - truth(host, at_ns));
	assert_true(error <= (double)offset->error_ns);
	return error;
}

static void nothing_is_known_without_exchanges(void **state)
{
	struct clock_exchange impossible = {
		.sent_ns = 10, .received_ns = 0, .replied_ns = 20, .returned_ns = 15};
	struct clock_estimate *none = torsh_clock_estimate_create(NULL, 0),
			      *left_out = torsh_clock_estimate_create(&impossible, 1);
	struct clock_offset offset;

	(void)state;
	assert_false(torsh_clock_estimate_at(none, 0, &offset));
	assert_false(torsh_clock_estimate_at(left_out, 0, &offset));
	assert_int_equal(torsh_clock_estimate_rejected(left_out), 1);
	torsh_clock_estimate_destroy(none);
	torsh_clock_estimate_destroy(left_out);
}

static void an_even_network_gives_offset_and_drift(void **state)
{
	struct host host = quiet_host();
	struct clock_estimate *estimate;
	struct clock_offset offset;

	(void)state;
	host.drift = 50e-6;
	estimate = probe(&host);
	for (int64_t at_ns = S; at_ns < RUN_NS - S; at_ns += S) {
		assert_true(error_at(&host, estimate, at_ns, &offset) < 20 * US);
		assert_true(offset.error_ns < 100 * US);
		assert_true(fabs(offset.drift - 50e-6) < 1e-6);
	}
	torsh_clock_estimate_destroy(estimate);
}

static void a_network_that_is_slow_one_way_is_within_the_bound(void **state)
{
	struct host host = quiet_host();
	struct clock_estimate *estimate;
	struct clock_offset offset;
	double error = 0;

	(void)state;
	host.back_ns = 2e6;
	estimate = probe(&host);
	for (int64_t at_ns = 0; at_ns < RUN_NS; at_ns += S)
		error = fmax(error, error_at(&host, estimate, at_ns, &offset));
	/* No exchange can see that: the bound has to. */
	assert_true(error > 900 * US);
	torsh_clock_estimate_destroy(estimate);
}

static void a_step_of_the_clock_begins_a_segment(void **state)
{
	struct host host = quiet_host();
	struct clock_estimate *estimate;
	struct clock_offset offset;

	(void)state;
	host.step_at_ns = 100 * S;
	host.step_ns = -250e6;
	estimate = probe(&host);
	for (int64_t at_ns = 0; at_ns < RUN_NS; at_ns += S / 4)
		error_at(&host, estimate, at_ns, &offset);
	error_at(&host, estimate, 98 * S, &offset);
	assert_true(offset.error_ns < 100 * US);
	/* When it was is not known to more than the time between two exchanges. */
	error_at(&host, estimate, 100 * S, &offset);
	assert_true(offset.error_ns > 100 * MS);
	error_at(&host, estimate, 102 * S, &offset);
	assert_true(offset.error_ns < 100 * US);
	torsh_clock_estimate_destroy(estimate);
}

/*
 * Clocks that differ by 11.56 s, and a rank that enters each all-reduce 1.6 ms after the other: by
 * raw times all of the 11.56 s would be a delay.
 */
static void collectives_alone_tell_offset_from_lateness(void **state)
{
	struct host host = quiet_host();
	struct clock_exchange exchanges[N_EXCHANGES];
	struct clock_estimate *estimate;
	struct clock_offset offset;

	(void)state;
	for (int i = 0; i < N_EXCHANGES; i++) {
		int64_t entered_ns = i * EVERY_NS, late_ns = entered_ns + 1600 * US,
			left_ns = late_ns + (int64_t)uniform(30e3, 60e3),
			other_left_ns = late_ns + (int64_t)uniform(30e3, 60e3);

		exchanges[i] = torsh_clock_exchange_of_collective(entered_ns, left_ns,
								  read_other(&host, late_ns),
								  read_other(&host, other_left_ns));
	}
	estimate = torsh_clock_estimate_create(exchanges, N_EXCHANGES);
	for (int i = 0; i < N_EXCHANGES; i++) {
		int64_t skew_ns;

		error_at(&host, estimate, exchanges[i].sent_ns, &offset);
		skew_ns = exchanges[i].replied_ns - offset.offset_ns - exchanges[i].sent_ns;
		assert_true(llabs(skew_ns - 1600 * US) <= (int64_t)offset.error_ns);
		assert_true(offset.error_ns < 2 * MS);
	}
	torsh_clock_estimate_destroy(estimate);
}

static struct host any_host(void)
{
	double least_ns = uniform(10e3, 50e3);
	struct host host = {
		.offset_ns = uniform(-20e9, 20e9),
		.drift = uniform(-50e-6, 50e-6),
		.period_s = uniform(300, 900),
		.phase = uniform(0, 6),
		.step_at_ns = INT64_MAX,
		.rate_at_ns = INT64_MAX,
		.there_ns = least_ns,
		.back_ns = least_ns * uniform(0.3, 3),
		.jitter_ns = uniform(2e3, 100e3),
		.burst_ns = 5e6,
		.burst_share = 0.05,
	};

	/* Its rate changes by up to 1 ppb a second. */
	host.wander_ns = pow(host.period_s / (2 * M_PI), 2) * uniform(0, 1);
	if (uniform(0, 1) < 0.2) {
		host.step_at_ns = (int64_t)uniform(0, (double)RUN_NS);
		host.step_ns = (uniform(0, 1) < 0.5 ? -1 : 1) * pow(10, uniform(5.5, 8.7));
	}
	if (uniform(0, 1) < 0.2) {
		host.rate_at_ns = (int64_t)uniform(0, (double)RUN_NS);
		host.rate = uniform(-20e-6, 20e-6);
	}
	return host;
}

static int compare(const void *x, const void *y)
{
	const uint64_t *a = x, *b = y;

	return *a < *b ? -1 : *a > *b;
}

static void a_thousand_hosts_are_within_their_bounds(void **state)
{
	static uint64_t bounds[N_HOSTS * N_LOOKS], errors[N_HOSTS * N_LOOKS];
	struct clock_offset offset;
	size_t n = 0, n_outside = 0;

	(void)state;
	for (int i = 0; i < N_HOSTS; i++) {
		struct host host = any_host();
		struct clock_estimate *estimate = probe(&host);

		for (int k = 0; k < N_LOOKS; k++) {
			int64_t at_ns = (int64_t)uniform(0, (double)RUN_NS);

			assert_true(torsh_clock_estimate_at(estimate, at_ns, &offset));
			bounds[n] = offset.error_ns;
			errors[n] = (uint64_t)fabs((double)offset.offset_ns - truth(&host, at_ns));
			n_outside += errors[n] > offset.error_ns;
			n++;
		}
		torsh_clock_estimate_destroy(estimate);
	}
	qsort(bounds, n, sizeof(*bounds), compare);
	qsort(errors, n, sizeof(*errors), compare);
	print_message("%zu of %zu outside of the bound; error p50 %.1f us, p99 %.1f us; bound p50 "
		      "%.1f us, p99 %.1f us\n",
		      n_outside, n, (double)errors[n / 2] / 1e3, (double)errors[n * 99 / 100] / 1e3,
		      (double)bounds[n / 2] / 1e3, (double)bounds[n * 99 / 100] / 1e3);
	assert_true(n_outside * 1000 <= n);
	/* The bound is not bought by claiming nothing. */
	assert_true(bounds[n / 2] < 150 * (uint64_t)US);
	assert_true(bounds[n * 9 / 10] < 300 * (uint64_t)US);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_known_without_exchanges),
		cmocka_unit_test(an_even_network_gives_offset_and_drift),
		cmocka_unit_test(a_network_that_is_slow_one_way_is_within_the_bound),
		cmocka_unit_test(a_step_of_the_clock_begins_a_segment),
		cmocka_unit_test(collectives_alone_tell_offset_from_lateness),
		cmocka_unit_test(a_thousand_hosts_are_within_their_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
