/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Pauses and holds of a target: what is recorded follows from the stamps of events alone, whoever
 * noticed when.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/unit/fixtures/channel_fixture.h"
#include "tools/writer/input/order.h"
#include "tools/writer/input/target.h"

#define BEGIN 100u /* of the pause, and its end */
#define END 200u

struct paused {
	struct fake_channel channel;
	struct fake_thread thread;
	struct target *target;
};

static void start(struct paused *paused)
{
	const struct clock_conversion clock = {0};

	memset(paused, 0, sizeof(*paused));
	fake_channel_create(&paused->channel, 2);
	assert_int_equal(
		torsh_target_create(&paused->target, dup(paused->channel.fd), getpid(), -1), 0);
	torsh_target_begin(paused->target, &clock, NULL);
	fake_thread_open(&paused->thread, &paused->channel, 0, 1, 10);
}

static void begin_pause(struct paused *paused)
{
	torsh_process_state_add_pause_edge(&paused->target->state, BEGIN);
	torsh_process_state_add_pause_edge(&paused->target->state, END);
}

static void finish(struct paused *paused)
{
	fake_thread_leave(&paused->thread);
	torsh_target_destroy(paused->target);
	fake_channel_destroy(&paused->channel);
}

static struct target_pass drain(struct paused *paused)
{
	return torsh_target_drain(paused->target, 1, UINT64_MAX);
}

static const struct heap *heap_of(const struct paused *paused)
{
	return &paused->target->state.heap;
}

static void resize(struct paused *paused, uint64_t stamp, uint64_t from, uint64_t to, uint64_t size)
{
	const struct event_alloc alloc = {.address = to,
					  .size = size,
					  .usable = torsh_codec_expected_usable(size),
					  .entry = ALLOC_REALLOC};

	fake_begin(&paused->thread);
	fake_commit_free(&paused->thread, stamp, from, 1);
	fake_begin(&paused->thread);
	/* As agents send it in a pause: without a stack. */
	torsh_ring_commit(&paused->thread.ring, paused->thread.begin,
			  torsh_codec_put_alloc(
				  &paused->thread.codec, paused->thread.begin, stamp + 1, &alloc, 0,
				  0, 0, (uint32_t[CODEC_INLINE_IDS + CODEC_CHANGE_IDS]){0}));
}

static uint64_t bytes_of_stack(const struct paused *paused, uint32_t site)
{
	return torsh_heap_totals(heap_of(paused), site).live.bytes;
}

static void only_blocks_from_outside_are_recorded(void **state)
{
	struct paused paused;

	(void)state;
	start(&paused);
	begin_pause(&paused);
	fake_alloc(&paused.thread, BEGIN - 1, 0x1000, 1, 1);
	fake_alloc(&paused.thread, BEGIN, 0x2000, 2, 1);
	fake_alloc(&paused.thread, END - 1, 0x3000, 4, 1);
	fake_alloc(&paused.thread, END, 0x4000, 8, 1);
	drain(&paused);
	assert_int_equal(heap_of(&paused)->tracker.bytes, 1 + 8);
	assert_int_equal(heap_of(&paused)->allocs, 2);
	finish(&paused);
}

static void frees_are_recorded_all_the_while(void **state)
{
	struct paused paused;

	(void)state;
	start(&paused);
	begin_pause(&paused);
	fake_free(&paused.thread, BEGIN - 3, 0x9000);
	fake_alloc(&paused.thread, BEGIN - 2, 0x1000, 1, 1);
	fake_alloc(&paused.thread, BEGIN - 1, 0x2000, 2, 1);
	fake_free(&paused.thread, BEGIN + 1, 0x1000);
	fake_alloc(&paused.thread, BEGIN + 2, 0x3000, 4, 1);
	fake_free(&paused.thread, BEGIN + 3, 0x8000);
	fake_free(&paused.thread, END + 1, 0x3000);
	drain(&paused);
	assert_int_equal(heap_of(&paused)->tracker.bytes, 2);
	assert_int_equal(heap_of(&paused)->frees, 1);
	assert_int_equal(heap_of(&paused)->unknown_frees, 1);
	assert_int_equal(heap_of(&paused)->pause_frees, 2);
	finish(&paused);
}

static void a_recorded_block_that_is_resized_keeps_its_stack(void **state)
{
	struct paused paused;

	(void)state;
	start(&paused);
	begin_pause(&paused);
	fake_alloc(&paused.thread, 20, 0x1000, 1, 7);
	resize(&paused, BEGIN + 10, 0x1000, 0x2000, 16);
	/* This one is of the pause: it is not recorded. */
	resize(&paused, BEGIN + 20, 0x5000, 0x6000, 64);
	drain(&paused);
	assert_int_equal(heap_of(&paused)->tracker.bytes, 16);
	assert_int_equal(heap_of(&paused)->tracker.n, 1);
	assert_int_equal(bytes_of_stack(&paused, 1), 16);
	assert_int_equal(heap_of(&paused)->reallocs, 1);
	assert_int_equal(heap_of(&paused)->pause_frees, 1);
	finish(&paused);
}

static void a_resize_that_outlasts_the_pause_stays_with_its_stack(void **state)
{
	struct paused paused;

	(void)state;
	start(&paused);
	begin_pause(&paused);
	fake_alloc(&paused.thread, 20, 0x1000, 1, 7);
	/* Begun in the pause, and stamped when it was over. */
	resize(&paused, END - 1, 0x1000, 0x2000, 16);
	drain(&paused);
	assert_int_equal(bytes_of_stack(&paused, 1), 16);
	assert_int_equal(bytes_of_stack(&paused, 0), 0);
	finish(&paused);
}

static void an_address_that_is_given_out_again_ends_its_block(void **state)
{
	struct paused paused;

	(void)state;
	start(&paused);
	begin_pause(&paused);
	fake_alloc(&paused.thread, 20, 0x1000, 1, 7);
	fake_alloc(&paused.thread, BEGIN + 1, 0x1000, 2, 7);
	drain(&paused);
	assert_int_equal(heap_of(&paused)->tracker.bytes, 0);
	assert_int_equal(heap_of(&paused)->implicit_frees, 1);
	finish(&paused);
}

static void no_block_is_temporary_over_a_pause(void **state)
{
	struct paused paused;

	(void)state;
	start(&paused);
	begin_pause(&paused);
	fake_alloc(&paused.thread, 20, 0x1000, 1, 7);
	/* The thread may have allocated others meanwhile. */
	fake_free(&paused.thread, END + 1, 0x1000);
	fake_alloc(&paused.thread, END + 2, 0x1000, 1, 7);
	fake_free(&paused.thread, END + 3, 0x1000);
	drain(&paused);
	assert_int_equal(heap_of(&paused)->temporary, 1);
	finish(&paused);
}

static void counts(struct paused *paused, uint64_t stamp, bool is_base)
{
	const struct event event = {.id = EVENT_CPU_COUNTS, .cpu_counts = {.is_base = is_base}};
	const struct event more = {.id = EVENT_CPU_HARDWARE_COUNTS};

	fake_begin(&paused->thread);
	fake_commit_cold(&paused->thread, stamp, &event);
	fake_begin(&paused->thread);
	fake_commit_cold(&paused->thread, stamp, &more);
}

static void counts_of_time_in_a_pause_are_left_out(void **state)
{
	struct paused paused;

	(void)state;
	start(&paused);
	begin_pause(&paused);
	counts(&paused, BEGIN - 20, true);
	counts(&paused, BEGIN - 10, false);
	/* Since then it ran in the pause, too. */
	counts(&paused, BEGIN + 10, false);
	counts(&paused, BEGIN + 20, false);
	counts(&paused, END + 10, false);
	counts(&paused, END + 20, false);
	drain(&paused);
	assert_int_equal(torsh_timeline_count(paused.target->state.timeline), 2 * 3);
	finish(&paused);
}

static void counts_over_a_whole_pause_are_left_out(void **state)
{
	struct paused paused;

	(void)state;
	start(&paused);
	begin_pause(&paused);
	counts(&paused, BEGIN - 20, true);
	counts(&paused, END + 10, false);
	/* The thread began after that. */
	counts(&paused, END + 20, true);
	counts(&paused, END + 30, false);
	drain(&paused);
	assert_int_equal(torsh_timeline_count(paused.target->state.timeline), 2 * 3);
	finish(&paused);
}

static void nothing_younger_than_the_hold_is_folded(void **state)
{
	const struct clock_instant moment = {.ns = BEGIN << CHANNEL_STAMP_SHIFT};
	struct paused paused;

	(void)state;
	start(&paused);
	fake_alloc(&paused.thread, BEGIN, 0x1000, 1, 1);
	torsh_target_hold(paused.target, &moment);
	assert_false(torsh_target_is_at_hold(paused.target));
	fake_begin(&paused.thread);
	drain(&paused);
	/* The event under way may be as old. */
	assert_false(torsh_target_is_at_hold(paused.target));
	fake_commit_free(&paused.thread, BEGIN + 1, 0x1000, 0);
	drain(&paused);
	assert_true(torsh_target_is_at_hold(paused.target));
	assert_int_equal(heap_of(&paused)->tracker.bytes, 1);
	torsh_target_release(paused.target);
	drain(&paused);
	assert_int_equal(heap_of(&paused)->tracker.bytes, 0);
	finish(&paused);
}

static void a_target_that_is_held_does_not_end(void **state)
{
	const struct clock_instant moment = {.ns = BEGIN << CHANNEL_STAMP_SHIFT};
	struct paused paused;

	(void)state;
	start(&paused);
	torsh_target_hold(paused.target, &moment);
	fake_alloc(&paused.thread, END, 0x1000, 1, 1);
	atomic_store(&paused.target->fate, TARGET_DIED);
	for (int i = 0; i < 10; i++)
		drain(&paused);
	assert_true(torsh_target_is_at_hold(paused.target));
	assert_int_equal(paused.target->is_drained, 0);
	torsh_target_release(paused.target);
	for (int i = 0; i < 10 && !paused.target->is_drained; i++)
		drain(&paused);
	assert_int_equal(paused.target->is_drained, 1);
	assert_int_equal(heap_of(&paused)->tracker.bytes, 1);
	assert_int_equal(torsh_target_counts(paused.target).delivered, 1);
	finish(&paused);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_blocks_from_outside_are_recorded),
		cmocka_unit_test(frees_are_recorded_all_the_while),
		cmocka_unit_test(a_recorded_block_that_is_resized_keeps_its_stack),
		cmocka_unit_test(a_resize_that_outlasts_the_pause_stays_with_its_stack),
		cmocka_unit_test(an_address_that_is_given_out_again_ends_its_block),
		cmocka_unit_test(no_block_is_temporary_over_a_pause),
		cmocka_unit_test(counts_of_time_in_a_pause_are_left_out),
		cmocka_unit_test(counts_over_a_whole_pause_are_left_out),
		cmocka_unit_test(nothing_younger_than_the_hold_is_folded),
		cmocka_unit_test(a_target_that_is_held_does_not_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
