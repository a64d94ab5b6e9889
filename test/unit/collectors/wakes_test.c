/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Who ends waits: the table alone with times that the test chooses, then threads and signal
 * handlers that really wait and post, each of which knows who it was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "collectors/waits/wakes.h"

#define OBJECT UINT64_C(0x7f0012345678)
#define MS UINT64_C(1000000)
#define AT (UINT64_C(900000) * MS) /* of the clock */

static struct wake_slot slots[WAKE_SLOTS];

static int empty(void **state)
{
	(void)state;
	memset(slots, 0, sizeof(slots));
	return 0;
}

static void post(uint64_t object, enum wake_whom whom, uint32_t tid, uint64_t at_ns)
{
	if (torsh_wakes_has_waiter(slots, object))
		torsh_wakes_post(slots, object, whom, tid, at_ns);
}

static void expect_wake(uint32_t place, uint64_t begin_ns, uint64_t now_ns, uint32_t tid,
			uint64_t at_ns)
{
	struct wake wake = torsh_wakes_take(slots, place, OBJECT, false, begin_ns, now_ns);

	assert_int_equal(wake.tid, tid);
	/* A record's time is one of 256 ns. */
	assert_in_range(wake.at_ns, tid && at_ns > 255 ? at_ns - 255 : at_ns, at_ns);
}

static void the_record_of_who_ends_a_wait_is_the_waiters(void **state)
{
	uint32_t place = torsh_wakes_enter(slots, OBJECT);

	(void)state;
	assert_int_not_equal(place, 0);
	post(OBJECT, WAKE_ONE, 4194303, AT + MS);
	expect_wake(place, AT, AT + 2 * MS, 4194303, AT + MS);
	/* It is taken once. */
	expect_wake(place, AT, AT + 2 * MS, 0, 0);
	torsh_wakes_leave(slots, place, OBJECT);
	assert_false(torsh_wakes_has_waiter(slots, OBJECT));
}

static void a_record_outside_of_the_wait_is_none(void **state)
{
	uint32_t first = torsh_wakes_enter(slots, OBJECT), second;

	(void)state;
	post(OBJECT, WAKE_ONE, 7, AT);
	second = torsh_wakes_enter(slots, OBJECT);
	expect_wake(second, AT + MS, AT + 2 * MS, 0, 0);
	/* Longer than the time of a record. */
	expect_wake(first, AT - (UINT64_C(1) << 42), AT + MS, 0, 0);
	expect_wake(first, AT - MS, AT + MS, 7, AT);
}

static void nobody_is_recorded_where_nobody_waits(void **state)
{
	uint32_t place;

	(void)state;
	post(OBJECT, WAKE_ONE, 7, AT);
	place = torsh_wakes_enter(slots, OBJECT);
	expect_wake(place, AT - MS, AT + MS, 0, 0);
	torsh_wakes_leave(slots, place, OBJECT);
	post(OBJECT, WAKE_ONE, 7, AT);
	for (size_t i = 0; i < WAKE_ONES; i++)
		assert_int_equal(slots[place - 1].ones[i], 0);
	assert_int_equal(torsh_wakes_enter(slots, 0), 0);
	assert_int_equal(torsh_wakes_enter(slots, UINT64_C(1) << 48), 0);
}

static void of_several_threads_nothing_is_known(void **state)
{
	uint32_t place = torsh_wakes_enter(slots, OBJECT);

	(void)state;
	/* What the first posted may have gone to one that did not wait, as the second itself. */
	post(OBJECT, WAKE_ONE, 10, AT);
	post(OBJECT, WAKE_ONE, 11, AT + MS);
	expect_wake(place, AT - MS, AT + 9 * MS, 0, 0);
	/* A later wait isn't concerned. */
	expect_wake(place, AT + MS / 2, AT + 9 * MS, 11, AT + MS);
}

static void of_more_than_fit_nothing_is_known(void **state)
{
	uint32_t place = torsh_wakes_enter(slots, OBJECT);

	(void)state;
	post(OBJECT, WAKE_ONE, 9, AT);
	for (uint32_t i = 1; i <= 3 * WAKE_ONES; i++)
		post(OBJECT, WAKE_ONE, 10, AT + i * MS);
	expect_wake(place, AT - MS, AT + 30 * MS, 0, 0);
	expect_wake(place, AT + MS / 2, AT + 30 * MS, 10, AT + 3 * WAKE_ONES * MS);
}

static void of_many_of_one_thread_the_last_is_known(void **state)
{
	uint32_t place = torsh_wakes_enter(slots, OBJECT);

	(void)state;
	for (uint32_t i = 0; i < 10 * WAKE_ONES; i++)
		post(OBJECT, WAKE_ONE, 9, AT + i * MS / 10);
	expect_wake(place, AT - MS, AT + 9 * MS, 9, AT + (10 * WAKE_ONES - 1) * MS / 10);
}

static void of_two_waiters_and_two_that_end_waits_nothing_is_known(void **state)
{
	uint32_t first = torsh_wakes_enter(slots, OBJECT), second;

	(void)state;
	second = torsh_wakes_enter(slots, OBJECT);
	assert_int_equal(first, second);
	post(OBJECT, WAKE_ONE, 7, AT);
	post(OBJECT, WAKE_ONE, 8, AT + MS);
	expect_wake(first, AT - MS, AT + 2 * MS, 0, 0);
	torsh_wakes_leave(slots, first, OBJECT);
	expect_wake(second, AT - MS, AT + 2 * MS, 0, 0);
	torsh_wakes_leave(slots, second, OBJECT);
	/* One that ends both is. */
	first = torsh_wakes_enter(slots, OBJECT);
	second = torsh_wakes_enter(slots, OBJECT);
	post(OBJECT, WAKE_ONE, 7, AT);
	post(OBJECT, WAKE_ONE, 7, AT + MS);
	expect_wake(first, AT - MS, AT + 2 * MS, 7, AT + MS);
	expect_wake(second, AT - MS, AT + 2 * MS, 7, AT + MS);
}

static void two_that_end_a_wait_each_are_known(void **state)
{
	uint32_t first = torsh_wakes_enter(slots, OBJECT), second;

	(void)state;
	second = torsh_wakes_enter(slots, OBJECT);
	post(OBJECT, WAKE_ONE, 7, AT);
	expect_wake(first, AT - MS, AT + MS, 7, AT);
	torsh_wakes_leave(slots, first, OBJECT);
	post(OBJECT, WAKE_ONE, 8, AT + 2 * MS);
	expect_wake(second, AT - MS, AT + 3 * MS, 8, AT + 2 * MS);
}

static void a_broadcast_ends_all_waits(void **state)
{
	uint32_t first = torsh_wakes_enter(slots, OBJECT), second;

	(void)state;
	second = torsh_wakes_enter(slots, OBJECT);
	post(OBJECT, WAKE_ALL, 7, AT);
	expect_wake(first, AT - MS, AT + MS, 7, AT);
	expect_wake(second, AT - MS, AT + MS, 7, AT);
}

static void of_two_broadcasts_in_a_wait_nothing_is_known(void **state)
{
	uint32_t place = torsh_wakes_enter(slots, OBJECT);

	(void)state;
	post(OBJECT, WAKE_ALL, 7, AT);
	post(OBJECT, WAKE_ALL, 8, AT + MS);
	expect_wake(place, AT - MS, AT + 2 * MS, 0, 0);
	post(OBJECT, WAKE_ALL, 8, AT + 3 * MS);
	expect_wake(place, AT - MS, AT + 4 * MS, 0, 0);
	/* The other one's was before. */
	expect_wake(place, AT + MS / 2, AT + 4 * MS, 8, AT + 3 * MS);
	/* One of them may have been for another waiter alone. */
	post(OBJECT, WAKE_ONE, 7, AT + 5 * MS);
	expect_wake(place, AT + 2 * MS, AT + 6 * MS, 0, 0);
}

static void a_slot_in_the_making_takes_nothing(void **state)
{
	uint32_t place = torsh_wakes_enter(slots, OBJECT);

	(void)state;
	/* As its first waiter leaves it while it clears what was there. */
	slots[place - 1].owner |= WAKE_IN_MAKING;
	assert_false(torsh_wakes_has_waiter(slots, OBJECT));
	assert_int_equal(torsh_wakes_enter(slots, OBJECT), 0);
	slots[place - 1].owner &= ~(uint64_t)WAKE_IN_MAKING;
	assert_true(torsh_wakes_has_waiter(slots, OBJECT));
	assert_int_equal(torsh_wakes_enter(slots, OBJECT), place);
}

static void a_lock_comes_from_its_last_owner(void **state)
{
	uint32_t place = torsh_wakes_enter(slots, OBJECT);
	struct wake wake;

	(void)state;
	torsh_wakes_enter(slots, OBJECT);
	for (uint32_t i = 0; i < 20; i++)
		post(OBJECT, WAKE_NEXT_OWNER, 10 + i, AT + i * MS);
	wake = torsh_wakes_take(slots, place, OBJECT, true, AT - MS, AT + 30 * MS);
	assert_int_equal(wake.tid, 29);
}

static void objects_of_one_slot_are_told_apart(void **state)
{
	uint64_t other = 0;
	uint32_t place;

	(void)state;
	/* While one waits, another can't enter. */
	place = torsh_wakes_enter(slots, OBJECT);
	for (uint64_t object = OBJECT + 8; !other; object += 8) {
		uint32_t entered = torsh_wakes_enter(slots, object);

		other = entered ? 0 : object;
		if (entered)
			torsh_wakes_leave(slots, entered, object);
	}
	assert_false(torsh_wakes_has_waiter(slots, other));
	post(other, WAKE_ONE, 7, AT);
	expect_wake(place, AT - MS, AT + MS, 0, 0);
	/* One that found the slot of another owner just before leaves nothing. */
	torsh_wakes_post(slots, other, WAKE_ONE, 7, AT);
	torsh_wakes_post(slots, other, WAKE_ALL, 7, AT);
	expect_wake(place, AT - MS, AT + MS, 0, 0);
	assert_int_equal(slots[place - 1].all, 0);
	torsh_wakes_leave(slots, place, other);
	assert_true(torsh_wakes_has_waiter(slots, OBJECT));
	torsh_wakes_leave(slots, place, OBJECT);
	assert_int_equal(torsh_wakes_enter(slots, other), place);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define THREADS 8u
#define ROUNDS 3000u

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Two threads that hand each other the turn. */
struct pair {
	sem_t turns[2];
	uint32_t number, n_known, n_wrong;
	pthread_t threads[2];
};

struct side {
	struct pair *pair;
	uint32_t of;
};

static uint64_t object_of(const struct pair *pair, uint32_t side)
{
	return (uint64_t)(uintptr_t)&pair->turns[side];
}

static void post_turn(struct pair *pair, uint32_t side, uint32_t tid)
{
	uint64_t object = object_of(pair, side);

	if (torsh_wakes_has_waiter(slots, object))
		torsh_wakes_post(slots, object, WAKE_ONE, tid, now_ns());
	sem_post(&pair->turns[side]);
}

static void wait_turn(struct pair *pair, uint32_t side, uint32_t expected)
{
	uint64_t object = object_of(pair, side), begin_ns = now_ns(), end_ns;
	uint32_t place = torsh_wakes_enter(slots, object);
	struct wake wake;

	while (sem_wait(&pair->turns[side]))
		assert_int_equal(errno, EINTR);
	if (!place)
		return;
	end_ns = now_ns();
	wake = torsh_wakes_take(slots, place, object, false, begin_ns, end_ns);
	torsh_wakes_leave(slots, place, object);
	pair->n_known += wake.tid != 0;
	pair->n_wrong +=
		wake.tid && (wake.tid != expected || wake.at_ns < begin_ns || wake.at_ns > end_ns);
}

static void *take_turns(void *of)
{
	const struct side *side = of;
	struct pair *pair = side->pair;
	uint32_t own = 2 * pair->number + side->of + 1, other = 2 * pair->number + !side->of + 1;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		if (side->of)
			wait_turn(pair, 1, other);
		post_turn(pair, !side->of, own);
		if (!side->of)
			wait_turn(pair, 0, other);
	}
	return NULL;
}

static void threads_that_race_find_who_ended_their_waits(void **state)
{
	static struct pair pairs[THREADS / 2];
	static struct side sides[THREADS];
	uint32_t n_known = 0;

	(void)state;
	for (uint32_t i = 0; i < THREADS; i++) {
		struct pair *pair = &pairs[i / 2];

		pair->number = i / 2;
		sem_init(&pair->turns[i % 2], 0, 0);
		sides[i] = (struct side){.pair = pair, .of = i % 2};
	}
	for (uint32_t i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&pairs[i / 2].threads[i % 2], NULL, take_turns, &sides[i]),
			0);
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(pairs[i / 2].threads[i % 2], NULL);
	for (uint32_t i = 0; i < THREADS / 2; i++) {
		n_known += pairs[i].n_known;
		assert_int_equal(pairs[i].n_wrong, 0);
	}
	assert_int_not_equal(n_known, 0);
	for (uint32_t i = 0; i < WAKE_SLOTS; i++)
		assert_int_equal(slots[i].owner & WAKE_WAITERS, 0);
}

/*
 * A lock that is a semaphore. Its takers try first, and so take what was posted for the waiter,
 * which goes on to wait: whoever held it last ended the wait.
 */
struct contended {
	sem_t lock;
	uint32_t holder; /* that released it last; of whoever has the lock */
	uint64_t released_ns;
	_Atomic uint32_t n_waits, n_known, n_wrong;
};

static struct contended contended;

static void release(uint32_t tid)
{
	uint64_t object = (uint64_t)(uintptr_t)&contended.lock;

	contended.holder = tid;
	contended.released_ns = now_ns();
	if (torsh_wakes_has_waiter(slots, object))
		torsh_wakes_post(slots, object, WAKE_ONE, tid, now_ns());
	sem_post(&contended.lock);
}

static void wait_for_lock(void)
{
	uint64_t object = (uint64_t)(uintptr_t)&contended.lock, begin_ns = now_ns();
	uint32_t place = torsh_wakes_enter(slots, object);
	struct wake wake = {0};
	bool is_free;
	int value = 0;

	sem_getvalue(&contended.lock, &value);
	is_free = value > 0;
	while (sem_wait(&contended.lock))
		assert_int_equal(errno, EINTR);
	if (place && !is_free)
		wake = torsh_wakes_take(slots, place, object, false, begin_ns, now_ns());
	if (place)
		torsh_wakes_leave(slots, place, object);
	contended.n_waits++;
	contended.n_known += wake.tid != 0;
	contended.n_wrong += wake.tid && (wake.tid != contended.holder ||
					  wake.at_ns + 256 < contended.released_ns);
}

static void work(void)
{
	for (uint64_t until = now_ns() + 20000; now_ns() < until;)
		;
}

/* As a lock of Python: it is tried first. */
static void *contend(void *of)
{
	uint32_t tid = (uint32_t)(uintptr_t)of;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		if (sem_trywait(&contended.lock))
			wait_for_lock();
		work();
		release(tid);
	}
	return NULL;
}

static void expect_none_wrong(uint32_t n_threads)
{
	pthread_t threads[THREADS];

	memset(&contended, 0, sizeof(contended));
	sem_init(&contended.lock, 0, 1);
	for (uint32_t i = 0; i < n_threads; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, contend, (void *)(uintptr_t)(i + 1)), 0);
	for (uint32_t i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	print_message("%u threads: %u of %u waits known\n", n_threads, contended.n_known,
		      contended.n_waits);
	assert_int_equal(contended.n_wrong, 0);
}

static void what_a_trial_takes_from_a_waiter_makes_no_waker_wrong(void **state)
{
	(void)state;
	expect_none_wrong(2);
	if (contended.n_waits > 100)
		assert_int_not_equal(contended.n_known, 0);
	expect_none_wrong(4);
}

static sem_t of_handler;

static void post_in_handler(int number)
{
	int saved = errno;

	(void)number;
	torsh_wakes_post(slots, (uint64_t)(uintptr_t)&of_handler, WAKE_ONE, 77, now_ns());
	sem_post(&of_handler);
	errno = saved;
}

static void a_signal_handler_ends_a_wait_of_its_own_thread(void **state)
{
	const struct sigaction action = {.sa_handler = post_in_handler, .sa_flags = SA_RESTART};
	uint64_t object = (uint64_t)(uintptr_t)&of_handler, begin_ns;

	(void)state;
	sem_init(&of_handler, 0, 0);
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 200; i++) {
		uint32_t place = torsh_wakes_enter(slots, object);
		struct wake wake;

		begin_ns = now_ns();
		raise(SIGUSR1);
		while (sem_wait(&of_handler))
			assert_int_equal(errno, EINTR);
		wake = torsh_wakes_take(slots, place, object, false, begin_ns, now_ns());
		torsh_wakes_leave(slots, place, object);
		assert_int_equal(wake.tid, 77);
	}
}

#define CASE(name) cmocka_unit_test_setup(name, empty)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_record_of_who_ends_a_wait_is_the_waiters),
		CASE(a_record_outside_of_the_wait_is_none),
		CASE(nobody_is_recorded_where_nobody_waits),
		CASE(of_several_threads_nothing_is_known),
		CASE(of_more_than_fit_nothing_is_known),
		CASE(of_many_of_one_thread_the_last_is_known),
		CASE(of_two_waiters_and_two_that_end_waits_nothing_is_known),
		CASE(two_that_end_a_wait_each_are_known),
		CASE(a_broadcast_ends_all_waits),
		CASE(of_two_broadcasts_in_a_wait_nothing_is_known),
		CASE(a_slot_in_the_making_takes_nothing),
		CASE(a_lock_comes_from_its_last_owner),
		CASE(objects_of_one_slot_are_told_apart),
		CASE(threads_that_race_find_who_ended_their_waits),
		CASE(what_a_trial_takes_from_a_waiter_makes_no_waker_wrong),
		CASE(a_signal_handler_ends_a_wait_of_its_own_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
