/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Times of a client's clock, which counts other units, from the moment at which it registers it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* With CUPTI's stand-ins below: they take the place of what the library finds. */
#include "collectors/cuda/cupti/cuda_clock.c"

struct cupti_functions torsh_cupti;

void torsh_cuda_ticks_anchor(void)
{
}

uint64_t torsh_cuda_now_ns(void)
{
	return torsh_cuda_monotonic_ns();
}

#define UNITS_A_NS 23 /* tenths of one */

static cupti_clock *registered;
static int registers_in; /* the last of so many calls, or 0 */

static uint64_t units(void)
{
	return torsh_cuda_monotonic_ns() / 10 * UNITS_A_NS;
}

static int get_timestamp(uint64_t *stamp)
{
	*stamp = registered ? registered() : torsh_cuda_monotonic_ns() + (UINT64_C(1) << 60);
	/* Another thread registers its clock before this one has kept what it read. */
	if (registers_in && !--registers_in)
		torsh_cuda_clock_change(units);
	return 0;
}

static int register_clock(cupti_clock *clock)
{
	registered = clock;
	return 0;
}

static int begin(void **state)
{
	(void)state;
	registered = NULL;
	torsh_cupti.GetTimestamp = get_timestamp;
	torsh_cupti.ActivityRegisterTimestampCallback = register_clock;
	return 0;
}

/* A span of 5 µs that begins now, as the client's clock has it. */
static void expect_five_microseconds(void)
{
	uint64_t at_ns = torsh_cuda_monotonic_ns(), start = at_ns / 10 * UNITS_A_NS, begin_ns,
		 duration_ns;

	assert_true(
		torsh_cuda_clock_span(start, start + 500 * UNITS_A_NS, &begin_ns, &duration_ns));
	assert_in_range(duration_ns, 4950, 5050);
	assert_in_range(begin_ns, at_ns - 5000, at_ns + 5000);
}

static void a_clock_has_a_rate_from_its_first_record(void **state)
{
	(void)state;
	torsh_cuda_clock_read(1);
	torsh_cuda_clock_change(units);
	expect_five_microseconds();
}

static void a_reading_during_a_change_is_of_neither_clock(void **state)
{
	(void)state;
	torsh_cuda_clock_read(1);
	registers_in = N_TRIES;
	torsh_cuda_clock_read(1);
	assert_int_equal(registers_in, 0);
	expect_five_microseconds();
	torsh_cuda_clock_read(1);
	expect_five_microseconds();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_clock_has_a_rate_from_its_first_record, begin),
		cmocka_unit_test_setup(a_reading_during_a_change_is_of_neither_clock, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
