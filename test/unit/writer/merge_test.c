/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The events of all threads are folded in the order of their stamps, whatever the moments at which
 * they are published and the rings looked at.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/channel_fixture.h"
#include "test/unit/fixtures/random.h"
#include "tools/writer/input/merge.h"
#include "tools/writer/input/order.h"

#define THREADS_MAX 16u
#define N_EVENTS 3000u

struct story {
	struct fake_channel channel;
	struct channel_view view;
	struct fake_thread threads[THREADS_MAX];
	struct ring_consumer *consumers[THREADS_MAX];
	uint32_t n_threads;
	struct process_state state;
};

static void start(struct story *story, uint32_t n_threads)
{
	const struct clock_conversion clock = {0};
	int fd;

	memset(story, 0, sizeof(*story));
	fake_channel_create(&story->channel, n_threads);
	fd = dup(story->channel.fd);
	assert_int_equal(torsh_view_open(&story->view, fd), 0);
	torsh_process_state_create(&story->state, &story->view, &clock,
				   torsh_program_tables_create(1), 1);
	story->state.columns = torsh_columns_create();
	story->n_threads = n_threads;
	for (uint32_t i = 0; i < n_threads; i++) {
		fake_thread_open(&story->threads[i], &story->channel, i, i, 0);
		story->consumers[i] = torsh_ring_consumer_create();
		torsh_ring_consumer_start(story->consumers[i], torsh_view_slot(&story->view, i),
					  torsh_view_map_ring(&story->view, i, 0), FAKE_RING, 0, 0);
		story->consumers[i]->slot = story->consumers[i]->heap.number = i;
		story->consumers[i]->thread =
			torsh_process_state_add_thread(&story->state, i, "t", 0, 0);
	}
}

static void finish(struct story *story)
{
	for (uint32_t i = 0; i < story->n_threads; i++) {
		torsh_view_unmap_ring(&story->view, story->consumers[i]->ring.bytes, 0);
		torsh_ring_consumer_destroy(story->consumers[i]);
		fake_thread_leave(&story->threads[i]);
	}
	torsh_process_state_destroy(&story->state);
	torsh_view_close(&story->view);
	fake_channel_destroy(&story->channel);
}

/* One pass of the writer at time now, on the clock of stamps. */
static uint64_t pass(struct story *story, uint64_t limit, uint64_t now_ns)
{
	for (uint32_t i = 0; i < story->n_threads; i++)
		torsh_ring_consumer_copy(story->consumers[i], limit, now_ns);
	return torsh_merge_fold(&story->state, story->consumers, story->n_threads, limit,
				UINT64_MAX);
}

struct expected {
	uint64_t address;
	uint32_t thread;
};

/* What was folded, in its order, is what is expected. */
static void assert_folded(struct story *story, const struct expected *expected, uint32_t n)
{
	struct columns_reader *reader;
	struct columns_event event;
	uint64_t first_ns;
	uint32_t n_events;
	uint8_t *bytes;
	size_t n_bytes;

	assert_int_equal(
		torsh_columns_take(story->state.columns, &first_ns, &n_events, &bytes, &n_bytes),
		0);
	assert_int_equal(n_events, n);
	assert_int_equal(torsh_columns_open(&reader, first_ns, n_events, bytes, n_bytes), 0);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(torsh_columns_next(reader, &event), 1);
		assert_int_equal(event.event.free.address, expected[i].address);
		assert_int_equal(event.thread, expected[i].thread);
	}
	torsh_columns_close(reader);
	free(bytes);
}

/*
 * Time goes on in steps. In each step some thread takes a stamp, that very step, and publishes it
 * at once or only after some more steps, in which others publish theirs and the writer looks. What
 * it does is a free of the step's number, so that the order in which it is folded shows.
 */
static void publish_at_random(struct story *story, uint64_t seed)
{
	static struct expected expected[N_EVENTS];
	uint64_t random = seed, held[THREADS_MAX] = {0};
	uint32_t n = 0;

	for (uint64_t now = 100; n < N_EVENTS; now++) {
		uint32_t who = (uint32_t)random_below(&random, story->n_threads);
		struct fake_thread *thread = &story->threads[who];

		if (!held[who]) {
			fake_begin(thread);
			held[who] = now;
			expected[n++] = (struct expected){.address = 16 * now, .thread = who};
		}
		if (random_below(&random, 3)) {
			fake_commit_free(thread, held[who], 16 * held[who], 0);
			held[who] = 0;
		}
		/* Nobody takes a stamp between this look and the next step. */
		if (random_below(&random, 4) == 0)
			pass(story, now, 0);
	}
	for (uint32_t i = 0; i < story->n_threads; i++) {
		if (held[i])
			fake_commit_free(&story->threads[i], held[i], 16 * held[i], 0);
	}
	pass(story, ORDER_NO_BOUND, 0);
	assert_int_equal(story->state.late_events, 0);
	assert_folded(story, expected, N_EVENTS);
}

static void events_are_folded_in_the_order_of_time(void **state)
{
	static const uint32_t threads[] = {1, 2, 3, 7, 16};

	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct story story;

		start(&story, threads[seed % 5]);
		publish_at_random(&story, seed);
		finish(&story);
	}
}

static void a_busy_ring_holds_back_what_is_younger(void **state)
{
	static const struct expected expected[] = {{0x10, 0}, {0x20, 1}, {0x30, 0}, {0x40, 1}};
	struct story story;

	(void)state;
	start(&story, 2);
	fake_begin(&story.threads[0]);
	fake_commit_free(&story.threads[0], 10, 0x10, 0);
	fake_begin(&story.threads[0]); /* takes stamp 30 */
	fake_begin(&story.threads[1]);
	fake_commit_free(&story.threads[1], 20, 0x20, 0);
	fake_begin(&story.threads[1]);
	fake_commit_free(&story.threads[1], 40, 0x40, 0);
	/* Its next may have any stamp from 10 on: only what isn't younger is sure. */
	assert_int_equal(pass(&story, 1000, 0), 1);
	assert_int_equal(pass(&story, 1000, 0), 0);
	fake_commit_free(&story.threads[0], 30, 0x30, 0);
	assert_int_equal(pass(&story, 1000, 0), 3);
	assert_int_equal(story.state.late_events, 0);
	assert_folded(&story, expected, 4);
	finish(&story);
}

/* It was seen idle at 500: what it does now can't be older. */
static void a_ring_that_was_idle_holds_back_only_since_then(void **state)
{
	struct story story;

	(void)state;
	start(&story, 2);
	pass(&story, 500, 0);
	fake_begin(&story.threads[0]);
	fake_begin(&story.threads[1]);
	fake_commit_free(&story.threads[1], 400, 0x10, 0);
	fake_begin(&story.threads[1]);
	fake_commit_free(&story.threads[1], 600, 0x20, 0);
	assert_int_equal(pass(&story, 1000, 0), 1);
	finish(&story);
}

static void an_idle_ring_holds_back_nothing_below_the_limit(void **state)
{
	struct story story;

	(void)state;
	start(&story, 2);
	fake_begin(&story.threads[1]);
	fake_commit_free(&story.threads[1], 400, 0x10, 0);
	fake_begin(&story.threads[1]);
	fake_commit_free(&story.threads[1], 1600, 0x20, 0);
	assert_int_equal(pass(&story, 1000, 0), 1);
	assert_int_equal(pass(&story, 1600, 0), 1);
	finish(&story);
}

static void patience_with_a_stopped_thread_ends(void **state)
{
	static const struct expected expected[] = {{0x20, 1}, {0x10, 0}};
	struct story story;

	(void)state;
	start(&story, 2);
	fake_begin(&story.threads[0]); /* takes stamp 10, and is stopped by a debugger */
	fake_begin(&story.threads[1]);
	fake_commit_free(&story.threads[1], 20, 0x20, 0);
	assert_int_equal(pass(&story, 1000, 1), 0);
	assert_int_equal(pass(&story, 1000, ORDER_TIMEOUT_NS), 0);
	assert_int_equal(pass(&story, 1000, ORDER_TIMEOUT_NS + 2), 1);
	fake_commit_free(&story.threads[0], 10, 0x10, 0);
	assert_int_equal(pass(&story, 1000, ORDER_TIMEOUT_NS + 3), 1);
	assert_int_equal(story.state.late_events, 1);
	assert_folded(&story, expected, 2);
	finish(&story);
}

/* More than the writer's own buffer takes: what is left on the ring still counts as not seen. */
static void a_ring_that_is_not_copied_whole_holds_back_too(void **state)
{
	struct story story;
	uint64_t n = 0, now = 1, random = 6;

	(void)state;
	start(&story, 2);
	/*
	 * Thread 1 is busy since 1: nothing of thread 0 can be folded, so that its bytes pile up.
	 */
	fake_begin(&story.threads[1]);
	while (story.consumers[0]->capacity < 4u << 20 ||
	       story.threads[0].ring.head - story.consumers[0]->ring.head < 1000) {
		while (torsh_ring_has_room(&story.threads[0].ring, CODEC_EVENT_MAX)) {
			fake_begin(&story.threads[0]);
			fake_commit_free(&story.threads[0], ++now,
					 16 * random_below(&random, 1 << 30), 0);
			n++;
		}
		assert_int_equal(pass(&story, now, 0), 0);
	}
	fake_commit_free(&story.threads[1], now * 2, 0x10, 0);
	n++;
	while (n) {
		uint64_t n_now = pass(&story, now * 2, 0);

		assert_true(n_now > 0);
		n -= n_now;
		/* The columns have a greatest length; what is in them is not of interest here. */
		torsh_columns_destroy(story.state.columns);
		story.state.columns = NULL;
	}
	assert_int_equal(story.state.late_events, 0);
	assert_int_equal(story.state.last_stamp, now * 2);
	finish(&story);
}

/*
 * Blocks that one thread allocates and another frees at once: any event out of order would be an
 * unknown free.
 */
static void blocks_go_from_thread_to_thread(void **state)
{
	uint64_t random = 5, now = 100, n_live = 0, live[64];
	struct story story;

	(void)state;
	start(&story, 4);
	for (int i = 0; i < 200000; i++) {
		struct fake_thread *thread = &story.threads[random_below(&random, 4)];

		if (!torsh_ring_has_room(&thread->ring, CODEC_EVENT_MAX) ||
		    random_below(&random, 500) == 0) {
			pass(&story, now, 0);
			torsh_columns_destroy(story.state.columns);
			story.state.columns = NULL;
		}
		if (n_live == 64 || (n_live && random_below(&random, 2))) {
			fake_free(thread, ++now, live[--n_live]);
		} else {
			live[n_live] = 0x1000 + 32 * n_live;
			fake_alloc(thread, ++now, live[n_live++], 24, 1);
		}
	}
	pass(&story, ORDER_NO_BOUND, 0);
	assert_int_equal(story.state.n_folded, 200000);
	assert_int_equal(story.state.heap.unknown_frees, 0);
	assert_int_equal(story.state.heap.implicit_frees, 0);
	assert_int_equal(story.state.heap.tracker.n, n_live);
	finish(&story);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_folded_in_the_order_of_time),
		cmocka_unit_test(a_busy_ring_holds_back_what_is_younger),
		cmocka_unit_test(a_ring_that_was_idle_holds_back_only_since_then),
		cmocka_unit_test(an_idle_ring_holds_back_nothing_below_the_limit),
		cmocka_unit_test(patience_with_a_stopped_thread_ends),
		cmocka_unit_test(a_ring_that_is_not_copied_whole_holds_back_too),
		cmocka_unit_test(blocks_go_from_thread_to_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
