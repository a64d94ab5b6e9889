/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which seccomp filters of a process the writer takes for new ones, with those that the agent
 * counted as harmless.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/unit/fixtures/channel_fixture.h"
#include "tools/writer/input/target.h"

struct pair {
	struct fake_channel channel;
	struct target *target;
	uint64_t now_ns;
};

static void start(struct pair *pair, uint32_t n_filters)
{
	const struct clock_conversion clock = {0};

	*pair = (struct pair){0};
	fake_channel_create(&pair->channel, 4);
	pair->channel.header->n_filters = n_filters;
	assert_int_equal(torsh_target_create(&pair->target, dup(pair->channel.fd), getpid(), -1),
			 0);
	torsh_target_begin(pair->target, &clock, NULL);
	pair->target->status_fd = memfd_create("status", MFD_CLOEXEC);
	assert_true(pair->target->status_fd >= 0);
}

static void finish(struct pair *pair)
{
	torsh_target_destroy(pair->target);
	fake_channel_destroy(&pair->channel);
}

static void count(struct pair *pair, uint64_t n_harmless, uint64_t n_under_way)
{
	atomic_store(&pair->channel.header->harmless_filters,
		     n_under_way * CHANNEL_FILTER_UNDER_WAY + n_harmless);
}

/*
 * The next look, with the kernel's number of filters. Returns whether there is an unknown one by
 * now.
 */
static bool look(struct pair *pair, unsigned int n_filters)
{
	char status[128];
	int n = snprintf(status, sizeof(status),
			 "Name:\tx\nVmHWM:\t 8 kB\nVmRSS:\t 8 kB\nSeccomp_filters:\t%u\n",
			 n_filters);

	assert_int_equal(pwrite(pair->target->status_fd, status, (size_t)n, 0), n);
	assert_int_equal(ftruncate(pair->target->status_fd, n), 0);
	pair->now_ns += 1000000000;
	torsh_target_watch(pair->target, pair->now_ns);
	return atomic_load(&pair->channel.header->has_new_filter);
}

static void filters_at_the_start_and_counted_ones_are_not_new(void **state)
{
	struct pair pair;

	(void)state;
	start(&pair, 2);
	count(&pair, 1, 0);
	assert_false(look(&pair, 3));
	count(&pair, 2, 0);
	assert_false(look(&pair, 4));
	assert_false(look(&pair, 4));
	assert_true(look(&pair, 5));
	finish(&pair);
}

static void a_call_under_way_may_have_added_its_filter_or_not(void **state)
{
	struct pair pair;

	(void)state;
	start(&pair, 1);
	assert_false(look(&pair, 1));
	count(&pair, 0, 1);
	assert_false(look(&pair, 1));
	assert_false(look(&pair, 2));
	count(&pair, 1, 0);
	assert_false(look(&pair, 2));
	count(&pair, 1, 1);
	assert_true(look(&pair, 4));
	finish(&pair);
}

/* The writer comes later than the process began. */
static void one_that_was_added_before_the_first_look_is_new(void **state)
{
	struct pair pair;

	(void)state;
	start(&pair, 0);
	assert_true(look(&pair, 1));
	finish(&pair);
}

/* Before Linux 5.9. */
static void a_kernel_without_a_count_has_no_new_ones(void **state)
{
	struct pair pair;

	(void)state;
	start(&pair, 0);
	count(&pair, 2, 0);
	assert_false(look(&pair, 0));
	count(&pair, 3, 0);
	assert_false(look(&pair, 0));
	finish(&pair);
}

/* /proc wasn't there for the process. */
static void without_the_start_nothing_is_new(void **state)
{
	struct pair pair;

	(void)state;
	start(&pair, CHANNEL_FILTERS_UNKNOWN);
	assert_false(look(&pair, 3));
	finish(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filters_at_the_start_and_counted_ones_are_not_new),
		cmocka_unit_test(a_call_under_way_may_have_added_its_filter_or_not),
		cmocka_unit_test(one_that_was_added_before_the_first_look_is_new),
		cmocka_unit_test(a_kernel_without_a_count_has_no_new_ones),
		cmocka_unit_test(without_the_start_nothing_is_new),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
