/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The kernel gives the numbers of threads again: the latest thread with one is found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/unit/fixtures/channel_fixture.h"
#include "tools/writer/fold/process_state.h"

#define N_THREADS 50000u
#define N_TIDS 7000u

static struct fake_channel channel;
static struct channel_view view;
static struct process_state state;

static int start(void **unused)
{
	const struct clock_conversion clock = {0};

	(void)unused;
	fake_channel_create(&channel, 1);
	assert_int_equal(torsh_view_open(&view, dup(channel.fd)), 0);
	torsh_process_state_create(&state, &view, &clock, torsh_program_tables_create(1), 1);
	return 0;
}

static int finish(void **unused)
{
	(void)unused;
	torsh_process_state_destroy(&state);
	torsh_view_close(&view);
	fake_channel_destroy(&channel);
	return 0;
}

static uint32_t add(uint32_t tid, bool is_interrupt)
{
	return torsh_process_state_add_thread(&state, tid, "t", is_interrupt, 0);
}

static void the_latest_thread_with_a_tid_is_found(void **unused)
{
	uint32_t first = add(70, false), other = add(71, false), second;

	(void)unused;
	assert_int_equal(torsh_process_state_thread(&state, 70), first);
	second = add(70, false);
	assert_int_equal(torsh_process_state_thread(&state, 70), second);
	assert_int_equal(torsh_process_state_thread(&state, 71), other);
	assert_int_equal(torsh_process_state_thread(&state, 72), UINT32_MAX);
	assert_int_equal(torsh_process_state_thread(&state, 0), UINT32_MAX);
}

static void what_interrupts_a_thread_is_not_the_thread(void **unused)
{
	uint32_t thread = add(70, false);

	(void)unused;
	add(70, true);
	add(71, true);
	assert_int_equal(torsh_process_state_thread(&state, 70), thread);
	assert_int_equal(torsh_process_state_thread(&state, 71), UINT32_MAX);
}

static void of_many_threads_the_latest_are_found(void **unused)
{
	static uint32_t latest[N_TIDS];

	(void)unused;
	for (uint32_t i = 0; i < N_THREADS; i++)
		latest[i * 31 % N_TIDS] = add(i * 31 % N_TIDS + 1, false);
	for (uint32_t i = 0; i < N_TIDS; i++)
		assert_int_equal(torsh_process_state_thread(&state, i + 1), latest[i]);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, start, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_latest_thread_with_a_tid_is_found),
		CASE(what_interrupts_a_thread_is_not_the_thread),
		CASE(of_many_threads_the_latest_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
