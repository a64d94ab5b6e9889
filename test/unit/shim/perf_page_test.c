/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reading counters of the PMU from a page like the kernel's: made here, as machines of tests have
 * no PMU. What the processor would answer comes from functions, which also change the page as the
 * kernel does when it switches the thread out in between.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "shim/perf/perf_page.h"

#define WIDTH 48u
#define TICKS UINT64_C(5000)

static struct perf_event_mmap_page *page;
static uint64_t counters[4];
static uint32_t asked; /* the index that was read last */
static int n_asked, n_to_switch; /* how often the thread is switched out while it reads */

/* Another task has the PMU meanwhile: the kernel puts the count into the page. */
static void switch_out_and_in(void)
{
	page->lock++;
	page->offset += 1000;
	page->time_enabled += 70;
	page->time_running += 30;
	page->index = 3;
	counters[2] = 5;
	page->lock++;
}

static uint64_t counter(uint32_t index)
{
	uint64_t value = counters[index];

	asked = index;
	n_asked++;
	if (n_to_switch > 0) {
		n_to_switch--;
		switch_out_and_in();
	}
	return value;
}

static uint64_t ticks(void)
{
	return TICKS;
}

static const struct perf_instructions fake = {counter, ticks};

static int make_page(void **state)
{
	(void)state;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return -1;
	page->cap_user_rdpmc = 1;
	page->pmc_width = WIDTH;
	n_asked = n_to_switch = 0;
	memset(counters, 0, sizeof(counters));
	return 0;
}

static int drop_page(void **state)
{
	(void)state;
	return munmap(page, 4096);
}

static struct perf_reading read_it(void)
{
	struct perf_reading reading = {0};

	assert_true(torsh_perf_page_read(page, &fake, true, &reading));
	return reading;
}

static void a_count_is_the_offset_and_what_the_processor_has(void **state)
{
	(void)state;
	page->index = 2;
	page->offset = 100;
	counters[1] = 23;
	assert_int_equal(read_it().value, 123);
	assert_int_equal(asked, 1);
}

static void the_uppermost_bit_of_a_counter_is_its_sign(void **state)
{
	(void)state;
	/* The kernel starts a counter below 0, so that it overflows in time. */
	page->index = 1;
	page->offset = INT64_C(1) << 31;
	counters[0] = (UINT64_C(1) << WIDTH) - (UINT64_C(1) << 31) + 7;
	assert_int_equal(read_it().value, 7);
	/* Bits above the width are none of its. */
	counters[0] |= UINT64_C(0xabcd) << WIDTH;
	assert_int_equal(read_it().value, 7);
	assert_int_equal(torsh_perf_page_extend(UINT64_C(1) << 47, 48), -(INT64_C(1) << 47));
	assert_int_equal(torsh_perf_page_extend((UINT64_C(1) << 47) - 1, 48),
			 (INT64_C(1) << 47) - 1);
	assert_int_equal(torsh_perf_page_extend(UINT64_MAX, 64), -1);
	assert_int_equal(torsh_perf_page_extend(UINT64_C(0xffffffff), 32), -1);
	assert_int_equal(torsh_perf_page_extend(5, 0), 5);
}

static void a_counter_that_is_not_on_the_processor_is_not_asked(void **state)
{
	(void)state;
	page->index = 0;
	page->offset = 77;
	assert_int_equal(read_it().value, 77);
	page->index = 2;
	page->cap_user_rdpmc = 0;
	assert_int_equal(read_it().value, 77);
	assert_int_equal(n_asked, 0);
	assert_false(torsh_perf_page_is_usable(page));
}

static void a_switch_in_between_is_seen(void **state)
{
	struct perf_reading reading;

	(void)state;
	page->index = 1;
	page->offset = 100;
	page->time_enabled = page->time_running = 1000;
	counters[0] = 40;
	n_to_switch = 1;
	reading = read_it();
	assert_int_equal(n_asked, 2);
	assert_int_equal(reading.value, 1100 + 5);
	assert_int_equal(reading.enabled_ns, 1070);
	assert_int_equal(reading.running_ns, 1030);
}

static void a_page_that_changes_without_end_is_given_up(void **state)
{
	struct perf_reading reading;

	(void)state;
	page->index = 1;
	n_to_switch = 1 << 20;
	assert_false(torsh_perf_page_read(page, &fake, false, &reading));
	assert_int_equal(n_asked, PERF_PAGE_TRIES);
}

static void times_go_on_since_the_kernel_wrote_them(void **state)
{
	(void)state;
	page->cap_user_time = 1;
	page->time_shift = 10;
	page->time_mult = 512; /* half a nanosecond a tick */
	page->time_offset = 100;
	page->time_enabled = 2000;
	page->time_running = 500;
	assert_int_equal(read_it().enabled_ns, 2000 + 100 + TICKS / 2);
	assert_int_equal(read_it().running_ns, 500);
	page->index = 1;
	assert_int_equal(read_it().running_ns, 500 + 100 + TICKS / 2);
	/* Where ticks wrap or are not the kernel's clock, times are those of its last write. */
	page->capabilities |= PERF_PAGE_SHORT_TIME;
	assert_int_equal(read_it().enabled_ns, 2000);
	page->capabilities &= ~PERF_PAGE_SHORT_TIME;
	page->cap_user_time = 0;
	assert_int_equal(read_it().enabled_ns, 2000);
}

#define OF_A_PAGE(name) cmocka_unit_test_setup_teardown(name, make_page, drop_page)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF_A_PAGE(a_count_is_the_offset_and_what_the_processor_has),
		OF_A_PAGE(the_uppermost_bit_of_a_counter_is_its_sign),
		OF_A_PAGE(a_counter_that_is_not_on_the_processor_is_not_asked),
		OF_A_PAGE(a_switch_in_between_is_seen),
		OF_A_PAGE(a_page_that_changes_without_end_is_given_up),
		OF_A_PAGE(times_go_on_since_the_kernel_wrote_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
