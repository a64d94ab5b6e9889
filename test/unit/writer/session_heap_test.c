/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The sum of several heaps equals a naive replay that reads all of them after every event: the
 * peak, its moment, and each process's stacks at it. Processes are folded in turns of random
 * length, begin and end.
 */
#include <stdbool.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/random.h"
#include "test/unit/fixtures/sanitized.h"
#include "tools/writer/fold/heap_state.h"
#include "tools/writer/fold/session_heap.h"

#define N_PROCESSES 6u
#define N_SITES 4u
#define N_PLACES 12u
#define N_EVENTS 600u
#define N_SESSIONS UNLESS_SANITIZED(1500u, 400u)

struct turn {
	uint32_t process, place, site;
	uint64_t size; /* 0: the block ends; a process's last event ends it */
	bool is_last;
};

struct replay {
	uint64_t sizes[N_PROCESSES][N_PLACES];
	uint32_t sites[N_PROCESSES][N_PLACES];
	uint64_t peak, peak_stamp, peak_blocks, peak_of[N_PROCESSES][N_SITES];
};

struct process {
	struct heap heap;
	struct stack_table stacks;
	uint32_t sites[N_SITES];
	struct heap_producer producer;
	struct session_member *member;
	uint32_t next; /* its next event is this one or a later one */
	bool has_ended;
};

static void look_at_peak(struct replay *replay, uint64_t stamp)
{
	uint64_t bytes = 0, blocks = 0, of[N_PROCESSES][N_SITES] = {{0}};

	for (uint32_t p = 0; p < N_PROCESSES; p++) {
		for (uint32_t i = 0; i < N_PLACES; i++) {
			bytes += replay->sizes[p][i];
			blocks += replay->sizes[p][i] != 0;
			of[p][replay->sites[p][i]] += replay->sizes[p][i];
		}
	}
	if (bytes <= replay->peak)
		return;
	replay->peak = bytes;
	replay->peak_blocks = blocks;
	replay->peak_stamp = stamp;
	memcpy(replay->peak_of, of, sizeof(of));
}

static void replay_event(struct replay *replay, const struct turn *event, uint64_t stamp)
{
	if (event->is_last)
		memset(replay->sizes[event->process], 0, sizeof(replay->sizes[event->process]));
	else
		replay->sizes[event->process][event->place] = event->size;
	replay->sites[event->process][event->place] = event->site;
	look_at_peak(replay, stamp);
}

/* Of a process only what it did since it began and before it ended. */
static void make_events(struct turn *events, uint64_t *random)
{
	uint32_t ends[N_PROCESSES];

	for (uint32_t p = 0; p < N_PROCESSES; p++)
		ends[p] = N_EVENTS / 2 + (uint32_t)random_below(random, N_EVENTS);
	for (uint32_t i = 0; i < N_EVENTS; i++) {
		uint32_t p = (uint32_t)random_below(random, N_PROCESSES);
		bool is_alive = i < ends[p];

		events[i] = (struct turn){
			.process = p,
			.place = (uint32_t)random_below(random, N_PLACES),
			.site = (uint32_t)random_below(random, N_SITES),
			.size = random_below(random, 3) ? 1 + random_below(random, 1000) : 0,
			.is_last = !is_alive,
		};
	}
}

static void begin(struct process *process)
{
	memset(process, 0, sizeof(*process));
	torsh_heap_create(&process->heap, 0);
	torsh_stacks_create(&process->stacks);
	for (uint32_t i = 0; i < N_SITES; i++)
		process->sites[i] =
			torsh_heap_site(&process->heap, torsh_stacks_push(&process->stacks, 0, i,
									  torsh_stacks_hash(0, i)));
}

static void destroy(struct process *process)
{
	torsh_heap_destroy(&process->heap);
	torsh_stacks_destroy(&process->stacks);
}

static void fold(struct process *process, const struct turn *event, uint64_t stamp)
{
	uint64_t address = 0x1000 + 16 * event->place;

	if (process->has_ended)
		return;
	if (event->is_last) {
		torsh_session_heap_end(process->member, stamp);
		process->heap.session_heap = NULL;
		process->has_ended = true;
	} else if (event->size) {
		/* As one change, where a block was there: what realloc does. */
		torsh_heap_realloc_begin(&process->heap, &process->producer, stamp, address);
		torsh_heap_alloc(&process->heap, &process->producer,
				 &(struct heap_alloc){.stamp = stamp,
						      .address = address,
						      .size = event->size,
						      .site = process->sites[event->site],
						      .is_realloc = 1});
	} else {
		torsh_heap_free(&process->heap, &process->producer, stamp, address);
	}
}

/* Fold the process's events up to number `until`, stamps being numbers and 1. */
static void fold_some(struct process *process, uint32_t number, const struct turn *events,
		      uint32_t until)
{
	for (; process->next < until; process->next++) {
		if (events[process->next].process == number)
			fold(process, &events[process->next], process->next + 1);
	}
}

static uint32_t least_next(const struct process *processes)
{
	uint32_t least = N_EVENTS;

	for (uint32_t p = 0; p < N_PROCESSES; p++)
		least = processes[p].next < least ? processes[p].next : least;
	return least;
}

static const struct session_member *find_member(const struct session_heap *session_heap,
						uint32_t process)
{
	const struct session_member *member = session_heap->members;

	while (member && member->process != process)
		member = member->next;
	return member;
}

static void compare(struct session_heap *session_heap, const struct replay *replay,
		    const struct process *processes)
{
	torsh_session_heap_settle(session_heap, UINT64_MAX);
	torsh_peak_tracker_settle(&session_heap->tracker);
	assert_int_equal(session_heap->n_logged, 0);
	assert_int_equal(session_heap->late_changes, 0);
	assert_int_equal(session_heap->tracker.peak_bytes, replay->peak);
	assert_int_equal(session_heap->tracker.peak_n, replay->peak_blocks);
	assert_int_equal(session_heap->tracker.peak_stamp, replay->peak_stamp);
	for (uint32_t p = 0; p < N_PROCESSES; p++) {
		const struct session_member *member = find_member(session_heap, p);

		for (uint32_t i = 0; i < N_SITES; i++) {
			uint32_t site = processes[p].sites[i];
			struct site_usage usage = {0};

			if (member)
				usage = torsh_session_heap_usage(member, site);
			assert_int_equal(torsh_session_heap_peak_bytes(session_heap, &usage),
					 replay->peak_of[p][i]);
		}
	}
}

static void check_session(uint64_t seed)
{
	struct process processes[N_PROCESSES];
	struct turn events[N_EVENTS];
	struct replay replay;
	struct session_heap session_heap = {0};
	uint64_t random = seed;
	/* Up to here the first process is the only one. */
	uint32_t alone = (uint32_t)random_below(&random, N_EVENTS / 4);

	memset(&replay, 0, sizeof(replay));
	make_events(events, &random);
	for (uint32_t i = 0; i < alone; i++)
		events[i].process = 0;
	for (uint32_t i = 0; i < N_EVENTS; i++)
		replay_event(&replay, &events[i], i + 1);
	for (uint32_t p = 0; p < N_PROCESSES; p++)
		begin(&processes[p]);
	fold_some(&processes[0], 0, events, alone);
	for (uint32_t p = 0; p < N_PROCESSES; p++) {
		processes[p].next = alone;
		processes[p].member = torsh_session_heap_add(&session_heap, &processes[p].heap, p);
	}
	while (least_next(processes) < N_EVENTS) {
		uint32_t p = (uint32_t)random_below(&random, N_PROCESSES);
		uint32_t until = processes[p].next + (uint32_t)random_below(&random, 60);

		fold_some(&processes[p], p, events, until < N_EVENTS ? until : N_EVENTS);
		torsh_session_heap_settle(&session_heap, least_next(processes) + 1);
	}
	compare(&session_heap, &replay, processes);
	torsh_session_heap_destroy(&session_heap);
	for (uint32_t p = 0; p < N_PROCESSES; p++)
		destroy(&processes[p]);
}

static void the_sum_is_that_of_a_naive_replay(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < N_SESSIONS; seed++)
		check_session(seed);
}

static void a_change_that_comes_late_counts_from_then_on(void **state)
{
	struct process processes[2];
	struct session_heap session_heap = {0};

	(void)state;
	for (uint32_t p = 0; p < 2; p++) {
		begin(&processes[p]);
		processes[p].member = torsh_session_heap_add(&session_heap, &processes[p].heap, p);
	}
	fold(&processes[0], &(struct turn){.size = 100}, 10);
	fold(&processes[0], &(struct turn){.size = 0}, 20);
	torsh_session_heap_settle(&session_heap, 30);
	fold(&processes[1], &(struct turn){.size = 70}, 15);
	torsh_session_heap_settle(&session_heap, UINT64_MAX);
	torsh_peak_tracker_settle(&session_heap.tracker);
	assert_int_equal(session_heap.late_changes, 1);
	assert_int_equal(session_heap.tracker.peak_bytes, 100);
	assert_int_equal(session_heap.tracker.bytes, 70);
	torsh_session_heap_destroy(&session_heap);
	for (uint32_t p = 0; p < 2; p++)
		destroy(&processes[p]);
}

static void processes_that_had_nothing_at_the_peak_are_forgotten(void **state)
{
	struct session_heap session_heap = {0};
	struct process first;

	(void)state;
	begin(&first);
	first.member = torsh_session_heap_add(&session_heap, &first.heap, 0);
	fold(&first, &(struct turn){.size = 1000000}, 1);
	for (uint32_t i = 1; i < 1000; i++) {
		struct process other;

		begin(&other);
		other.member = torsh_session_heap_add(&session_heap, &other.heap, i);
		/* The peak is in the hundredth. */
		fold(&other, &(struct turn){.size = i == 100 ? 5000 : 10}, 2 * i);
		fold(&other, &(struct turn){.is_last = true}, 2 * i + 1);
		torsh_session_heap_settle(&session_heap, 2 * i + 2);
		destroy(&other);
	}
	assert_int_equal(session_heap.tracker.peak_bytes, 1005000);
	assert_non_null(find_member(&session_heap, 0));
	assert_non_null(find_member(&session_heap, 100));
	assert_ptr_equal(session_heap.members->next->next, NULL);
	torsh_session_heap_destroy(&session_heap);
	destroy(&first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sum_is_that_of_a_naive_replay),
		cmocka_unit_test(a_change_that_comes_late_counts_from_then_on),
		cmocka_unit_test(processes_that_had_nothing_at_the_peak_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
