/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the writer does with a channel over its life: slots come and go, rings run full, producers
 * wait.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "test/unit/fixtures/target_fixture.h"

static void a_slot_is_used_again_and_again(void **state)
{
	struct fake_thread thread;
	struct pair pair;

	(void)state;
	start(&pair);
	for (uint32_t use = 0; use < 5; use++) {
		fake_thread_open(&thread, &pair.channel, 2, 100 + use, 10);
		for (uint32_t i = 0; i < 10 + use; i++)
			fake_alloc(&thread, 20 + i, 0x10000 * (use + 1) + 32 * i, 8, 1 + use);
		atomic_store(&thread.ring.slot->dropped, 3);
		fake_thread_close(&thread);
		drain(&pair);
		assert_int_equal(atomic_load(&thread.ring.slot->state), THREAD_SLOT_FREE);
		assert_int_equal(atomic_load(&thread.ring.slot->head),
				 atomic_load(&thread.ring.slot->tail) << 1);
	}
	end(&pair, TARGET_DIED);
	assert_int_equal(counts_of(&pair).delivered, 10 + 11 + 12 + 13 + 14);
	assert_int_equal(counts_of(&pair).dropped, 15);
	assert_int_equal(pair.target->state.n_threads, 5);
	for (uint32_t use = 0; use < 5; use++) {
		assert_int_equal(pair.target->state.threads[use].tid, 100 + use);
		assert_int_equal(pair.target->state.threads[use].allocs, 10 + use);
		assert_int_equal(pair.target->state.threads[use].dropped, 3);
	}
	assert_int_equal(pair.target->state.heap.tracker.n, 60);
	finish(&pair);
}

static void a_closed_slot_is_not_freed_before_it_is_folded(void **state)
{
	struct fake_thread closed, busy;
	struct pair pair;

	(void)state;
	start(&pair);
	fake_thread_open(&closed, &pair.channel, 0, 1, 10);
	fake_thread_open(&busy, &pair.channel, 1, 2, 10);
	fake_begin(&busy);
	fake_alloc(&closed, 20, 0x1000, 8, 1);
	fake_thread_close(&closed);
	/* The other thread may be about to publish something older. */
	assert_int_equal(drain(&pair).n_folded, 0);
	assert_int_equal(atomic_load(&closed.ring.slot->state), THREAD_SLOT_CLOSED);
	fake_commit_free(&busy, 15, 0x2000, 0);
	assert_int_equal(drain(&pair).n_folded, 2);
	assert_int_equal(atomic_load(&closed.ring.slot->state), THREAD_SLOT_FREE);
	fake_thread_leave(&busy);
	finish(&pair);
}

static void many_rings_full_go_through(void **state)
{
	uint64_t random = 1, n = 0;
	struct fake_thread thread;
	struct pair pair;

	(void)state;
	start(&pair);
	fake_thread_open(&thread, &pair.channel, 0, 1, 0);
	for (int round = 0; round < 50; round++) {
		uint64_t n_before = n;

		while (torsh_ring_has_room(&thread.ring, CODEC_EVENT_MAX) &&
		       random_below(&random, 20000)) {
			fake_alloc(&thread, n, 0x1000 + 16 * (n % 5000), n % 100, 1 + n % 50);
			n++;
		}
		assert_int_equal(drain(&pair).n_folded, n - n_before);
	}
	fake_thread_leave(&thread);
	end(&pair, TARGET_DIED);
	assert_int_equal(counts_of(&pair).delivered, n);
	assert_int_equal(counts_of(&pair).ring_bytes, thread.ring.head);
	finish(&pair);
}

static void a_thread_goes_on_in_a_large_ring(void **state)
{
	struct fake_thread thread;
	struct pair pair;
	uint64_t n = 0;

	(void)state;
	start(&pair);
	for (uint32_t use = 0; use < 3; use++) {
		fake_thread_open(&thread, &pair.channel, 1, 100 + use, n);
		while (torsh_ring_has_room(&thread.ring, CODEC_EVENT_MAX)) {
			fake_alloc(&thread, n, 0x1000 + 16 * (n % 5000), n % 100, 1 + n % 50);
			n++;
		}
		if (use)
			drain(&pair);
		fake_thread_enlarge(&thread, &pair.channel, 1);
		/* Less than there seems to be: what is still in the small ring counts. */
		while (torsh_ring_has_room(&thread.ring, CODEC_EVENT_MAX)) {
			fake_alloc(&thread, n, 0x1000 + 16 * (n % 5000), n % 100, 1 + n % 50);
			n++;
		}
		drain(&pair);
		fake_alloc(&thread, n++, 0x10, 8, 1);
		fake_thread_close(&thread);
		drain(&pair);
		assert_int_equal(atomic_load(&thread.ring.slot->state), THREAD_SLOT_FREE);
	}
	end(&pair, TARGET_DIED);
	assert_int_equal(counts_of(&pair).delivered, n);
	assert_int_equal(pair.target->state.n_notes, 0);
	finish(&pair);
}

static void a_slot_that_ended_is_the_next_one_taken(void **state)
{
	struct fake_thread threads[3];
	struct channel_header *header;
	struct pair pair;

	(void)state;
	start(&pair);
	header = pair.channel.header;
	for (uint32_t i = 0; i < 3; i++)
		fake_thread_open(&threads[i], &pair.channel, i, 1 + i, 0);
	assert_int_equal((uint32_t)atomic_load(&header->free_slots), 0);
	atomic_store(&header->freed_awaited, 1);
	fake_thread_close(&threads[2]);
	fake_thread_close(&threads[1]);
	drain(&pair);
	assert_int_equal(atomic_load(&header->n_freed), 2);
	assert_int_equal(atomic_load(&header->freed_awaited), 0);
	/* The lowest first. */
	assert_int_equal((uint32_t)atomic_load(&header->free_slots), 1 + 1);
	assert_int_equal(atomic_load(&pair.channel.slots[1].next_free), 2 + 1);
	assert_int_equal(atomic_load(&pair.channel.slots[2].next_free), 0);
	fake_thread_leave(&threads[0]);
	finish(&pair);
}

struct waiter {
	struct thread_slot *slot;
	uint64_t suffix_before;
};

/* As agent/producer/producer.c waits for room. */
static void *wait_for_room(void *argument)
{
	struct waiter *waiter = argument;

	while (atomic_load(&waiter->slot->tail) == waiter->suffix_before) {
		uint32_t progress = atomic_load(&waiter->slot->progress);

		atomic_store(&waiter->slot->producer_waits, 1);
		if (atomic_load(&waiter->slot->tail) == waiter->suffix_before)
			syscall(SYS_futex, &waiter->slot->progress, FUTEX_WAIT, progress, NULL,
				NULL, 0);
	}
	return NULL;
}

static void a_producer_that_waits_is_woken(void **state)
{
	struct fake_thread thread;
	struct waiter waiter;
	struct pair pair;
	pthread_t waiting;

	(void)state;
	start(&pair);
	fake_thread_open(&thread, &pair.channel, 0, 1, 0);
	fake_alloc(&thread, 1, 0x1000, 8, 1);
	waiter = (struct waiter){.slot = thread.ring.slot};
	assert_int_equal(pthread_create(&waiting, NULL, wait_for_room, &waiter), 0);
	while (!atomic_load(&thread.ring.slot->producer_waits))
		sched_yield();
	drain(&pair);
	/* Without a wake-up this would never end. */
	pthread_join(waiting, NULL);
	assert_int_equal(atomic_load(&thread.ring.slot->producer_waits), 0);
	fake_thread_leave(&thread);
	finish(&pair);
}

/*
 * The writer was requested to end: it takes what is there, and does not race with the running
 * threads.
 */
static void a_target_that_is_left_may_go_on_forever(void **state)
{
	struct fake_thread thread;
	struct pair pair;
	uint64_t n = 0;

	(void)state;
	start(&pair);
	fake_thread_open(&thread, &pair.channel, 0, 1, 0);
	atomic_store(&pair.target->fate, TARGET_LEFT);
	for (int i = 0; i < 1000 && !pair.target->is_drained; i++) {
		fake_alloc(&thread, n, 0x1000 + 16 * n, 8, 1);
		n++;
		drain(&pair);
	}
	assert_int_equal(pair.target->is_drained, 1);
	assert_true(counts_of(&pair).delivered >= 1);
	fake_thread_leave(&thread);
	finish(&pair);
}

static void a_fork_notes_what_the_child_inherits(void **state)
{
	const struct event fork = {.id = EVENT_FORK, .fork = {.child = 4711}};
	struct fake_thread thread;
	struct pair pair;

	(void)state;
	start(&pair);
	fake_thread_open(&thread, &pair.channel, 0, 1, 0);
	fake_alloc(&thread, 1, 0x1000, 30, 1);
	fake_alloc(&thread, 2, 0x2000, 12, 1);
	fake_begin(&thread);
	fake_commit_cold(&thread, 3, &fork);
	fake_free(&thread, 4, 0x1000);
	drain(&pair);
	assert_int_equal(pair.target->state.n_forks, 1);
	assert_int_equal(pair.target->state.forks[0].child, 4711);
	assert_int_equal(pair.target->state.forks[0].blocks, 2);
	assert_int_equal(pair.target->state.forks[0].bytes, 42);
	fake_thread_leave(&thread);
	finish(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slot_is_used_again_and_again),
		cmocka_unit_test(a_thread_goes_on_in_a_large_ring),
		cmocka_unit_test(a_slot_that_ended_is_the_next_one_taken),
		cmocka_unit_test(a_closed_slot_is_not_freed_before_it_is_folded),
		cmocka_unit_test(many_rings_full_go_through),
		cmocka_unit_test(a_producer_that_waits_is_woken),
		cmocka_unit_test(a_target_that_is_left_may_go_on_forever),
		cmocka_unit_test(a_fork_notes_what_the_child_inherits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
