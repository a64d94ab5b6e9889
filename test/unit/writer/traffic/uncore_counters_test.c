/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Counters of memory controllers become bytes: by simulated counters, in place of the kernel's.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <linux/perf_event.h>

#include <cmocka.h>

#include "tools/writer/traffic/uncore_counters.h"

#define N 3u

/* Two that read, of 64 and of 32 bytes, and one that writes. */
static struct uncore_event events[N] = {
	{.type = 13, .cpu = 0, .config = {4, 5, 6}, .bytes = 64},
	{.type = 14, .cpu = 28, .config = {7}, .bytes = 32},
	{.type = 13, .cpu = 0, .config = {9}, .bytes = 64, .is_write = true},
};
static const struct uncore_pmus pmus = {.events = events, .n_events = N};

/* The simulated kernel. Descriptors are indices and 100. */
static struct uncore_reading simulated[N];
static uint32_t n_open, n_closed, refused; /* refused: from which counter on; N: none */
static ssize_t short_read; /* what a read returns instead; 0: all is fine */

static int open_simulated(const struct perf_event_attr *attributes, uint32_t cpu)
{
	const struct uncore_event *event = &events[n_open];

	if (n_open == refused)
		return -EACCES;
	assert_int_equal(attributes->size, sizeof(*attributes));
	assert_int_equal(attributes->type, event->type);
	assert_int_equal(attributes->config, event->config[0]);
	assert_int_equal(attributes->config1, event->config[1]);
	assert_int_equal(attributes->config2, event->config[2]);
	assert_int_equal(cpu, event->cpu);
	/* Sources of the machine refuse these, and samples. */
	assert_false(attributes->exclude_kernel || attributes->exclude_hv ||
		     attributes->exclude_user || attributes->sample_period);
	assert_int_equal(attributes->read_format,
			 PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING);
	return 100 + (int)n_open++;
}

static ssize_t read_simulated(int fd, void *at, size_t n)
{
	assert_int_equal(n, sizeof(struct uncore_reading));
	if (short_read < 0)
		errno = (int)-short_read;
	if (short_read)
		return short_read < 0 ? -1 : short_read;
	memcpy(at, &simulated[fd - 100], n);
	return (ssize_t)n;
}

static int close_simulated(int fd)
{
	assert_in_range(fd, 100, 100 + N - 1);
	n_closed++;
	return 0;
}

static const struct uncore_calls calls = {open_simulated, read_simulated, close_simulated};
static struct uncore_counters counters;
static uint64_t sums[2];

/* Let a counter go on, for the part running of enabled. */
static void count(uint32_t i, uint64_t value, uint64_t enabled, uint64_t running)
{
	simulated[i].value += value;
	simulated[i].enabled_ns += enabled;
	simulated[i].running_ns += running;
}

static void count_all(uint64_t value)
{
	for (uint32_t i = 0; i < N; i++)
		count(i, value, 1000, 1000);
}

static int start(void **state)
{
	(void)state;
	n_open = n_closed = 0;
	refused = N;
	short_read = 0;
	for (uint32_t i = 0; i < N; i++)
		simulated[i] = (struct uncore_reading){12345 * i, 777, 700};
	if (torsh_uncore_open(&counters, &pmus, &calls))
		return -1;
	return torsh_uncore_read(&counters, sums) == 1 ? 0 : -1;
}

static int stop(void **state)
{
	(void)state;
	torsh_uncore_close(&counters);
	return n_closed == n_open ? 0 : -1;
}

static void expect_sums(uint64_t read, uint64_t written)
{
	assert_int_equal(torsh_uncore_read(&counters, sums), 1);
	assert_int_equal(sums[0], read);
	assert_int_equal(sums[1], written);
}

static void counts_are_bytes_since_the_first_reading(void **state)
{
	(void)state;
	assert_int_equal(sums[0] + sums[1], 0);
	count_all(10);
	expect_sums(10 * 64 + 10 * 32, 10 * 64);
	count(0, 1, 500, 500);
	count(1, 0, 500, 500);
	count(2, 5, 500, 500);
	expect_sums(11 * 64 + 10 * 32, 15 * 64);
	assert_float_equal(torsh_uncore_share(&counters), 1, 1e-9);
}

static void counters_that_take_turns_are_extrapolated(void **state)
{
	(void)state;
	count_all(0);
	count(0, 10, 3000, 1000); /* 4000 ns in all, of which it counted 2000 */
	expect_sums(10 * 64 * 2, 0);
	assert_float_equal(torsh_uncore_share(&counters), 0.5, 1e-9);
	/* Each piece of time has its own share. */
	count_all(0);
	count(0, 4, 3000, 0);
	expect_sums(10 * 64 * 2 + 4 * 64 * 4, 0);
	assert_float_equal(torsh_uncore_share(&counters), 3.0 / 8, 1e-9);
}

static void who_had_no_turn_is_waited_for(void **state)
{
	(void)state;
	count(0, 10, 1000, 1000);
	count(1, 10, 1000, 1000);
	count(2, 0, 1000, 0);
	assert_int_equal(torsh_uncore_read(&counters, sums), 0);
	/* What it counts then stands for the time without a turn. */
	count(0, 10, 1000, 1000);
	count(1, 10, 1000, 1000);
	count(2, 7, 1000, 1000);
	expect_sums(20 * 64 + 20 * 32, 14 * 64);
	/* From then on all are due again. */
	count(2, 7, 1000, 1000);
	assert_int_equal(torsh_uncore_read(&counters, sums), 0);
}

static void a_value_may_pass_its_largest(void **state)
{
	(void)state;
	simulated[0].value = UINT64_MAX - 2;
	torsh_uncore_close(&counters);
	n_open = n_closed = 0;
	assert_int_equal(torsh_uncore_open(&counters, &pmus, &calls), 0);
	assert_int_equal(torsh_uncore_read(&counters, sums), 1);
	count_all(0);
	count(0, 5, 0, 0);
	assert_int_equal(simulated[0].value, 2);
	expect_sums(5 * 64, 0);
}

static void what_goes_backwards_ends_it(void **state)
{
	(void)state;
	count_all(100);
	expect_sums(100 * 96, 100 * 64);
	count_all(0);
	simulated[1].value--;
	assert_int_equal(torsh_uncore_read(&counters, sums), -ERANGE);
	/* As do times that can't be. */
	simulated[1].value++;
	count(0, 0, 0, 2000);
	assert_int_equal(torsh_uncore_read(&counters, sums), -ERANGE);
}

static void what_cannot_be_read_ends_it(void **state)
{
	(void)state;
	count_all(1);
	short_read = -EBADF;
	assert_int_equal(torsh_uncore_read(&counters, sums), -EBADF);
	short_read = 8;
	assert_int_equal(torsh_uncore_read(&counters, sums), -EIO);
}

static void one_that_is_refused_closes_all(void **state)
{
	struct uncore_counters none;

	(void)state;
	n_open = n_closed = 0;
	refused = 2;
	assert_int_equal(torsh_uncore_open(&none, &pmus, &calls), -EACCES);
	assert_int_equal(n_closed, 2);
	assert_int_equal(none.n, 0);
	n_open = N;
	n_closed = 0;
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, start, stop)
	const struct CMUnitTest tests[] = {
		CASE(counts_are_bytes_since_the_first_reading),
		CASE(counters_that_take_turns_are_extrapolated),
		CASE(who_had_no_turn_is_waited_for),
		CASE(a_value_may_pass_its_largest),
		CASE(what_goes_backwards_ends_it),
		CASE(what_cannot_be_read_ends_it),
		CASE(one_that_is_refused_closes_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
