/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The folded heap equals a naive replay that keeps every block in an array and, after every event,
 * the usage of all stacks: sums, exact peak with its allocation sites, temporaries, realloc, and
 * errors of the program. Also if blocks lose their stacks in between.
 */
#include <stdbool.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "test/unit/fixtures/heap_replay.h"
#include "test/unit/fixtures/random.h"
#include "test/unit/fixtures/sanitized.h"
#include "tools/writer/fold/heap_state.h"

#define N_EVENTS 120u
#define N_TRACES UNLESS_SANITIZED(4000u, 1000u)

struct folded {
	struct heap heap;
	struct stack_table stacks;
	struct heap_producer producers[N_PRODUCERS];
	uint32_t sites[N_SITES];
};

static void start(struct folded *folded)
{
	memset(folded, 0, sizeof(*folded));
	torsh_heap_create(&folded->heap, 0);
	torsh_stacks_create(&folded->stacks);
	for (uint32_t i = 0; i < N_SITES; i++)
		folded->sites[i] =
			torsh_heap_site(&folded->heap, torsh_stacks_push(&folded->stacks, 0, i,
									 torsh_stacks_hash(0, i)));
	for (uint32_t i = 0; i < N_PRODUCERS; i++)
		folded->producers[i].number = i;
}

static void finish(struct folded *folded)
{
	torsh_heap_destroy(&folded->heap);
	torsh_stacks_destroy(&folded->stacks);
}

static struct live_block live_at(const struct heap *heap, uint64_t address)
{
	struct live_block block;

	assert_true(torsh_live_find(&heap->live, address, &block));
	return block;
}

static uint64_t address_of(uint32_t place)
{
	return 0x1000 + 32 * (uint64_t)place;
}

static void both_alloc(struct replay *replay, struct folded *folded, uint64_t time,
		       uint64_t *random, bool is_realloc)
{
	static const uint64_t sizes[] = {
		0, 0, 1, 8, 8, 16, 24, 100, SMALL_SIZE_MAX, SMALL_SIZE_MAX + 1};
	uint32_t producer = (uint32_t)random_below(random, N_PRODUCERS),
		 place = (uint32_t)random_below(random, N_PLACES);
	uint32_t site = (uint32_t)random_below(random, N_SITES);
	uint64_t size = sizes[random_below(random, sizeof(sizes) / sizeof(sizes[0]))];

	/* Mostly a place that is free, as allocators do. */
	for (int i = 0; i < 8 && replay->places[place].is_live; i++)
		place = (uint32_t)random_below(random, N_PLACES);
	replay_alloc(replay, producer, place, size, site, is_realloc);
	torsh_heap_alloc(&folded->heap, &folded->producers[producer],
			 &(struct heap_alloc){
				 .stamp = time,
				 .address = address_of(place),
				 .size = size,
				 .usable = size + 8,
				 .site = folded->sites[site],
				 .is_realloc = (uint32_t)is_realloc,
			 });
}

static void both_change(struct replay *replay, struct folded *folded, uint64_t time,
			uint64_t *random)
{
	uint32_t producer = (uint32_t)random_below(random, N_PRODUCERS),
		 place = (uint32_t)random_below(random, N_PLACES);

	/* Often the thread's latest block, so that there are temporaries. */
	if (replay->last[producer] && random_below(random, 3) == 0)
		place = replay->last[producer] - 1;
	switch (random_below(random, 10)) {
	case 0:
	case 1:
		replay_begin(replay, producer, place);
		torsh_heap_realloc_begin(&folded->heap, &folded->producers[producer], time,
					 address_of(place));
		break;
	case 2:
		both_alloc(replay, folded, time, random, true);
		break;
	case 3:
		replay_fail(replay, producer);
		torsh_heap_realloc_failed(&folded->heap, &folded->producers[producer], time);
		break;
	case 4:
	case 5:
	case 6:
		replay_free(replay, producer, place);
		torsh_heap_free(&folded->heap, &folded->producers[producer], time,
				address_of(place));
		break;
	default:
		both_alloc(replay, folded, time, random, false);
		break;
	}
	look_at_peak(replay, time);
}

/* Memory gets short, or isn't any more. */
static void both_leave_out(struct replay *replay, struct folded *folded, uint64_t *random)
{
	uint32_t stack = torsh_stacks_below(&folded->stacks, 0, N_SITES);

	replay->leaves_out = random_below(random, 3) != 0;
	torsh_heap_leave_out_stacks(&folded->heap, replay->leaves_out, stack);
	if (!replay->leaves_out || random_below(random, 2))
		return;
	replay_move(replay);
	folded->heap.next_move = 0;
	torsh_heap_move_small(&folded->heap);
}

static void assert_same_small(const struct replay *replay, const struct folded *folded)
{
	const struct heap *heap = &folded->heap;
	uint64_t bytes = 0, blocks = 0;

	for (uint32_t i = 0; i < N_PLACES; i++) {
		if (!replay->places[i].is_live || replay->places[i].site != SMALL)
			continue;
		bytes += replay->places[i].size;
		blocks++;
	}
	assert_int_equal(heap->small.n_blocks, blocks);
	assert_int_equal(heap->small.bytes, bytes);
	assert_int_equal(heap->small.usable_bytes, bytes + 8 * blocks);
	assert_int_equal(heap->n_left_out, replay->left_out);
}

static void assert_same_now(const struct replay *replay, const struct folded *folded)
{
	uint64_t bytes, blocks, bytes_of[N_SHARES], blocks_of[N_SHARES], usable = 0;
	const struct heap *heap = &folded->heap;

	add_up(replay, &bytes, &blocks, bytes_of, blocks_of);
	usable = bytes + 8 * blocks;
	assert_int_equal(heap->tracker.bytes, bytes);
	assert_int_equal(heap->tracker.n, blocks);
	assert_int_equal(heap->usable_bytes, usable);
	assert_same_small(replay, folded);
	if (heap->small_site) {
		assert_int_equal(torsh_heap_totals(heap, heap->small_site).live.bytes,
				 bytes_of[SMALL]);
		assert_int_equal(torsh_heap_totals(heap, heap->small_site).live.n,
				 blocks_of[SMALL]);
		assert_int_equal(torsh_heap_totals(heap, heap->small_site).allocs, 0);
	}
	for (uint32_t i = 0; i < N_SITES; i++) {
		struct site_totals totals = torsh_heap_totals(heap, folded->sites[i]);

		assert_int_equal(totals.live.bytes, bytes_of[i]);
		assert_int_equal(totals.live.n, blocks_of[i]);
		assert_int_equal(totals.allocs, replay->allocs_of[i]);
		assert_int_equal(totals.temporary, replay->temporary_of[i]);
	}
	assert_int_equal(heap->allocs, replay->allocs);
	assert_int_equal(heap->alloc_bytes, replay->alloc_bytes);
	assert_int_equal(heap->frees, replay->frees);
	assert_int_equal(heap->reallocs, replay->reallocs);
	assert_int_equal(heap->temporary, replay->temporary);
	assert_int_equal(heap->unknown_frees, replay->unknown);
	assert_int_equal(heap->implicit_frees, replay->implicit);
	assert_int_equal(heap->allocs, heap->frees + heap->implicit_frees + heap->tracker.n);
}

static void assert_same_peak(const struct replay *replay, struct folded *folded)
{
	struct heap *heap = &folded->heap;

	torsh_peak_tracker_settle(&heap->tracker);
	assert_int_equal(heap->tracker.peak_bytes, replay->peak);
	assert_int_equal(heap->tracker.peak_n, replay->peak_blocks);
	assert_int_equal(heap->tracker.peak_stamp, replay->peak_time);
	for (uint32_t i = 0; i < N_SITES; i++) {
		struct site_usage usage = torsh_heap_totals(heap, folded->sites[i]).live;

		assert_int_equal(torsh_site_usage_peak_bytes(&usage, &heap->tracker),
				 replay->peak_bytes_of[i]);
		assert_int_equal(torsh_site_usage_peak_n(&usage, &heap->tracker),
				 replay->peak_blocks_of[i]);
	}
	if (heap->small_site) {
		struct site_usage usage = torsh_heap_totals(heap, heap->small_site).live;

		assert_int_equal(torsh_site_usage_peak_bytes(&usage, &heap->tracker),
				 replay->peak_bytes_of[SMALL]);
		assert_int_equal(torsh_site_usage_peak_n(&usage, &heap->tracker),
				 replay->peak_blocks_of[SMALL]);
	}
}

static void fold_traces(bool gets_short)
{
	for (uint64_t seed = 1; seed <= N_TRACES; seed++) {
		struct replay replay = {0};
		struct folded folded;
		uint64_t random = seed;

		start(&folded);
		for (uint64_t time = 1; time <= N_EVENTS; time++) {
			both_change(&replay, &folded, time, &random);
			if (gets_short && random_below(&random, 24) == 0)
				both_leave_out(&replay, &folded, &random);
			assert_same_now(&replay, &folded);
			/* A look in between, as a checkpoint takes, changes nothing. */
			if (random_below(&random, 16) == 0)
				assert_same_peak(&replay, &folded);
		}
		assert_same_peak(&replay, &folded);
		finish(&folded);
	}
}

static void any_trace_folds_as_it_replays(void **state)
{
	(void)state;
	fold_traces(false);
}

static void without_stacks_of_small_blocks_sums_and_peaks_are_the_same(void **state)
{
	(void)state;
	fold_traces(true);
}

static void alloc(struct folded *folded, uint64_t time, uint64_t address, uint64_t size,
		  uint32_t site, bool is_realloc)
{
	torsh_heap_alloc(&folded->heap, &folded->producers[0],
			 &(struct heap_alloc){
				 .stamp = time,
				 .address = address,
				 .size = size,
				 .site = folded->sites[site],
				 .is_realloc = (uint32_t)is_realloc,
			 });
}

static void of_equal_peaks_the_first_counts(void **state)
{
	struct folded folded;

	(void)state;
	start(&folded);
	alloc(&folded, 10, 0x100, 50, 0, false);
	torsh_heap_free(&folded.heap, &folded.producers[0], 20, 0x100);
	alloc(&folded, 30, 0x200, 50, 1, false);
	torsh_heap_free(&folded.heap, &folded.producers[0], 40, 0x200);
	torsh_peak_tracker_settle(&folded.heap.tracker);
	assert_int_equal(folded.heap.tracker.peak_stamp, 10);
	for (uint32_t i = 0; i < 2; i++) {
		struct site_usage usage = torsh_heap_totals(&folded.heap, folded.sites[i]).live;

		assert_int_equal(torsh_site_usage_peak_bytes(&usage, &folded.heap.tracker),
				 i ? 0 : 50);
	}
	finish(&folded);
}

/* Free-then-malloc would see 100, malloc-then-free 230; the truth is 130. */
static void a_realloc_is_one_change(void **state)
{
	struct folded folded;

	(void)state;
	start(&folded);
	alloc(&folded, 10, 0x100, 100, 0, false);
	torsh_heap_realloc_begin(&folded.heap, &folded.producers[0], 20, 0x100);
	assert_int_equal(folded.heap.tracker.bytes, 100);
	alloc(&folded, 30, 0x900, 130, 1, true);
	assert_int_equal(folded.heap.tracker.bytes, 130);
	assert_int_equal(folded.heap.tracker.n, 1);
	torsh_peak_tracker_settle(&folded.heap.tracker);
	assert_int_equal(folded.heap.tracker.peak_bytes, 130);
	assert_int_equal(folded.heap.tracker.peak_n, 1);
	assert_int_equal(folded.heap.reallocs, 1);
	finish(&folded);
}

static void an_address_in_a_reallocs_hand_may_be_another_threads(void **state)
{
	struct folded folded;

	(void)state;
	start(&folded);
	alloc(&folded, 10, 0x100, 100, 0, false);
	torsh_heap_realloc_begin(&folded.heap, &folded.producers[0], 20, 0x100);
	torsh_heap_alloc(
		&folded.heap, &folded.producers[1],
		&(struct heap_alloc){
			.stamp = 25, .address = 0x100, .size = 7, .site = folded.sites[2]});
	alloc(&folded, 30, 0x900, 130, 1, true);
	assert_int_equal(folded.heap.implicit_frees, 0);
	assert_int_equal(folded.heap.tracker.bytes, 137);
	assert_int_equal(live_at(&folded.heap, 0x100).size, 7);
	finish(&folded);
}

static void blocks_are_counted_by_the_magnitude_of_their_size(void **state)
{
	static const struct {
		uint64_t size;
		uint32_t class;
	} sizes[] = {{0, 0}, {1, 1},	 {2, 2},     {3, 2},
		     {4, 3}, {1023, 10}, {1024, 11}, {LIVE_SIZE_MAX, 48}};
	struct folded folded;

	(void)state;
	start(&folded);
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint64_t before = folded.heap.size_blocks[sizes[i].class];

		alloc(&folded, i, 0x100 + 16 * i, sizes[i].size, 0, false);
		assert_int_equal(folded.heap.size_blocks[sizes[i].class], before + 1);
	}
	finish(&folded);
}

/*
 * Steps and reports compare the times of blocks: of a run of months they are as exact as of one of
 * seconds.
 */
static void blocks_of_a_run_of_a_year_have_their_times(void **state)
{
	const uint64_t first = 1000, year = UINT64_C(365) * 86400 * 3000000000 >> 4;
	struct heap_producer producer = {0};
	struct heap heap;

	(void)state;
	torsh_heap_create(&heap, first);
	for (uint32_t i = 0; i < 2; i++)
		torsh_heap_alloc(&heap, &producer,
				 &(struct heap_alloc){.stamp = first + year + i,
						      .address = 16 + 16 * i,
						      .size = 1});
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(live_at(&heap, 16 + 16 * i).stamp, year + i);
	torsh_heap_destroy(&heap);
}

/* A stamp has some nanoseconds: two threads may allocate at one address in one of them. */
static void blocks_of_one_moment_have_their_threads(void **state)
{
	struct heap_alloc alloc = {.stamp = 25, .address = 0x100, .size = 7};
	struct folded folded;

	(void)state;
	for (uint32_t last = 0; last < 2; last++) {
		start(&folded);
		for (uint32_t i = 0; i < 2; i++) {
			torsh_heap_alloc(&folded.heap, &folded.producers[i], &alloc);
			if (!i)
				torsh_heap_free(&folded.heap, &folded.producers[1], 25, 0x100);
		}
		assert_int_equal(folded.heap.temporary, 0);
		torsh_heap_free(&folded.heap, &folded.producers[last], 26, 0x100);
		assert_int_equal(folded.heap.temporary, last);
		finish(&folded);
	}
}

/* What the program marked as no leak stays so, before its stack would be left out and after. */
static void blocks_that_are_ignored_have_a_site_of_their_own(void **state)
{
	struct folded folded;
	struct heap *heap = &folded.heap;
	uint32_t marked;

	(void)state;
	start(&folded);
	marked = torsh_stacks_below(&folded.stacks, 0, N_SITES + 1);
	alloc(&folded, 10, 0x100, 100, 0, false);
	alloc(&folded, 11, 0x200, 50, 0, false);
	torsh_heap_ignore(heap, &folded.stacks, 12, 0x100, marked);
	torsh_heap_leave_out_stacks(heap, true, torsh_stacks_below(&folded.stacks, 0, N_SITES));
	heap->next_move = 0;
	torsh_heap_move_small(heap);
	alloc(&folded, 20, 0x300, 7, 0, false);
	assert_int_equal(torsh_heap_totals(heap, heap->small_site).live.bytes, 57);
	torsh_heap_ignore(heap, &folded.stacks, 21, 0x300, marked);
	assert_int_equal(torsh_heap_totals(heap, heap->small_site).live.bytes, 50);
	assert_int_equal(live_at(heap, 0x300).size, 7);
	assert_true(heap->sites[live_at(heap, 0x300).site].is_ignored);
	assert_true(heap->sites[live_at(heap, 0x100).site].is_ignored);
	assert_int_equal(heap->tracker.bytes, 157);
	finish(&folded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_trace_folds_as_it_replays),
		cmocka_unit_test(without_stacks_of_small_blocks_sums_and_peaks_are_the_same),
		cmocka_unit_test(blocks_that_are_ignored_have_a_site_of_their_own),
		cmocka_unit_test(of_equal_peaks_the_first_counts),
		cmocka_unit_test(a_realloc_is_one_change),
		cmocka_unit_test(an_address_in_a_reallocs_hand_may_be_another_threads),
		cmocka_unit_test(blocks_of_a_run_of_a_year_have_their_times),
		cmocka_unit_test(blocks_of_one_moment_have_their_threads),
		cmocka_unit_test(blocks_are_counted_by_the_magnitude_of_their_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
