/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Stretches of several streams and threads, against an array that is sorted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "test/unit/fixtures/random.h"
#include "tools/analysis/stretches.h"

enum { N = 20000, STREAMS = 3, THREADS = 4 };

static int compare(const void *a, const void *b)
{
	const struct device_stretch *x = a, *y = b;

	return (x->begin_ns > y->begin_ns) - (x->begin_ns < y->begin_ns);
}

/* Each thread's are in order; or, with is_shuffled, none are. All begin at different times. */
static struct device_stretch some_stretch(uint64_t *random, uint64_t number, uint64_t *clocks,
					  bool is_shuffled)
{
	uint64_t *clock = &clocks[random_below(random, THREADS)];
	struct device_stretch stretch = {.is_communication = random_below(random, 2)};

	*clock += random_below(random, UINT64_C(1) << random_below(random, 40)) + 1;
	stretch.begin_ns =
		(is_shuffled ? random_below(random, UINT64_C(1) << 40) : *clock) * N + number;
	stretch.end_ns =
		stretch.begin_ns + random_below(random, UINT64_C(1) << random_below(random, 50));
	stretch.asked_ns = stretch.begin_ns + 1000 -
			   random_below(random, UINT64_C(1) << random_below(random, 30));
	return stretch;
}

static void compare_all(bool is_shuffled)
{
	struct device_stretch *plain = calloc(N, sizeof(*plain)), found;
	uint64_t random = 5, clocks[THREADS] = {0};
	struct stretches stretches = {0};
	struct stretch_walk walk;

	for (uint64_t i = 0; i < N; i++) {
		plain[i] = some_stretch(&random, i, clocks, is_shuffled);
		torsh_stretches_add(&stretches, (uint32_t)random_below(&random, STREAMS),
				    &plain[i]);
	}
	qsort(plain, N, sizeof(*plain), compare);
	torsh_stretches_walk(&walk, &stretches);
	for (size_t i = 0; i < N; i++) {
		assert_true(torsh_stretches_next(&walk, &found));
		assert_int_equal(found.begin_ns, plain[i].begin_ns);
		assert_int_equal(found.end_ns, plain[i].end_ns);
		assert_int_equal(found.asked_ns, plain[i].asked_ns);
		assert_int_equal(found.is_communication, plain[i].is_communication);
	}
	assert_false(torsh_stretches_next(&walk, &found));
	torsh_stretches_free(&stretches);
	free(plain);
}

static void stretches_come_back_in_order(void **state)
{
	(void)state;
	compare_all(false);
}

static void stretches_in_no_order_come_back_in_order(void **state)
{
	(void)state;
	compare_all(true);
}

static void of_none_there_is_none(void **state)
{
	struct stretches stretches = {0};
	struct device_stretch found;
	struct stretch_walk walk;

	(void)state;
	torsh_stretches_walk(&walk, &stretches);
	assert_false(torsh_stretches_next(&walk, &found));
	torsh_stretches_free(&stretches);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stretches_come_back_in_order),
		cmocka_unit_test(stretches_in_no_order_come_back_in_order),
		cmocka_unit_test(of_none_there_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
