/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Tables of what devices did, against plain ones: sums by launch, launches that wait, times in
 * which a device was busy.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "test/unit/fixtures/random.h"
#include "tools/timeline/device/busy.h"
#include "tools/timeline/device/device_work.h"
#include "tools/timeline/device/launches.h"

#define NUMBERS 2000u
#define ROUNDS 20000u

/* Short and long ones, also at the ends of what is kept in few bits. */
static uint64_t some_duration(uint64_t *random)
{
	static const uint64_t bounds[] = {1000, UINT64_C(1) << 29, UINT64_C(1) << 40};

	return bounds[random_below(random, sizeof(bounds) / sizeof(*bounds))] -
	       random_below(random, 2);
}

/* Some event of the launch with that number, which is counted in the plain table, too. */
static struct event some_event(uint64_t *random, uint32_t correlation, struct device_caused *plain)
{
	struct event event = {.id = EVENT_KERNEL};

	switch (random_below(random, 5)) {
	case 0:
	case 1:
		event = (struct event){.id = EVENT_LAUNCH};
		event.launch.correlation = correlation;
		plain->is_launched = 1;
		break;
	case 2:
		event = (struct event){.id = EVENT_SUBMISSION};
		event.submission.correlation = correlation;
		plain->n_untimed++;
		break;
	default:
		event.kernel.correlation = correlation;
		event.kernel.duration_ns = some_duration(random);
		plain->ns += event.kernel.duration_ns;
		plain->n++;
	}
	return event;
}

static void compare_sums(const struct device_work *work, const struct device_caused *plain,
			 uint32_t stride)
{
	for (uint32_t number = 0; number < NUMBERS; number++) {
		struct device_caused found = torsh_device_work_by(work, number * stride);

		assert_int_equal(found.ns, plain[number].ns);
		assert_int_equal(found.n, plain[number].n);
		assert_int_equal(found.is_launched, plain[number].is_launched);
		assert_int_equal(found.n_untimed, plain[number].n_untimed);
	}
}

static void sums_by_launch_are_those_of_a_plain_table(void **state)
{
	/* Dense numbers, and such as share no page with another. */
	static const uint32_t strides[] = {1, 3, 1000003};
	uint64_t random = 1;

	(void)state;
	for (size_t s = 0; s < sizeof(strides) / sizeof(*strides); s++) {
		struct device_caused *plain = calloc(NUMBERS, sizeof(*plain));
		struct device_work work;

		torsh_device_work_create(&work);
		for (uint32_t i = 0; i < ROUNDS; i++) {
			uint32_t number = (uint32_t)(random_below(&random, NUMBERS - 1)) + 1;
			struct event event =
				some_event(&random, number * strides[s], &plain[number]);

			torsh_device_work_add(&work, &event, false);
			/*
			 * While nearly all have one kernel at most, and when nearly all have many.
			 */
			if (i == NUMBERS || i == ROUNDS - 1)
				compare_sums(&work, plain, strides[s]);
		}
		torsh_device_work_destroy(&work);
		free(plain);
	}
}

static void launches_come_and_go(void **state)
{
	bool *is_there = calloc(NUMBERS, sizeof(*is_there));
	struct launches launches;
	uint64_t random = 7;
	size_t n = 0;

	(void)state;
	torsh_launches_create(&launches);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		uint32_t number = (uint32_t)(random_below(&random, NUMBERS - 1)) + 1;
		struct launch_waiting *waiting = torsh_launches_find(&launches, number);

		assert_int_equal(waiting != NULL, is_there[number]);
		if (waiting) {
			assert_int_equal(waiting->launch.correlation, number);
			torsh_launches_remove(&launches, waiting);
		} else {
			torsh_launches_add(&launches,
					   &(struct device_launch){.correlation = number}, 1);
		}
		is_there[number] = !is_there[number];
		n += is_there[number] ? 1 : SIZE_MAX;
		assert_int_equal(launches.n, n);
	}
	torsh_launches_destroy(&launches);
	free(is_there);
}

static void busy_times_are_the_union(void **state)
{
	enum { LENGTH = 1000, SPANS = 60 };
	uint64_t random = 3;

	(void)state;
	for (int round = 0; round < 200; round++) {
		bool is_busy[LENGTH] = {false};
		struct busy busy = {0};
		size_t next = 0;

		for (int i = 0; i < SPANS; i++) {
			uint64_t begin = random_below(&random, LENGTH),
				 n = random_below(&random, 20);

			n = begin + n < LENGTH ? n : LENGTH - begin;
			memset(is_busy + begin, true, n);
			torsh_busy_add(&busy, begin, begin + n);
		}
		torsh_busy_settle(&busy);
		for (uint64_t from = 0; from < LENGTH; from += 37) {
			uint64_t to = from + 37 < LENGTH ? from + 37 : LENGTH, expected = 0;

			for (uint64_t at = from; at < to; at++)
				expected += is_busy[at];
			assert_int_equal(torsh_busy_within(&busy, from, to, &next), expected);
		}
		torsh_busy_free(&busy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_by_launch_are_those_of_a_plain_table),
		cmocka_unit_test(launches_come_and_go),
		cmocka_unit_test(busy_times_are_the_union),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
