/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the writer does with a channel that makes no sense: a process was killed in the middle of an
 * event, or bytes, stacks, heads and layouts are none that an agent writes. produced = delivered +
 * dropped holds after each of these ends.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/unit/fixtures/target_fixture.h"

static void an_end_of_a_ring_that_can_not_be_breaks_it(void **state)
{
	static const uint64_t ends[] = {0, UINT64_MAX - 1, 3 * FAKE_RING};

	(void)state;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct fake_thread thread;
		struct pair pair;

		start(&pair);
		fake_thread_open(&thread, &pair.channel, 0, 1, 0);
		fake_alloc(&thread, 1, 0x1000, 8, 1);
		drain(&pair);
		atomic_store(&thread.ring.slot->large_from, ends[i]);
		fake_alloc(&thread, 2, 0x2000, 8, 1);
		drain(&pair);
		drain(&pair);
		assert_int_equal(has_note(&pair, "its ring's head makes no sense"), 0);
		fake_thread_leave(&thread);
		end(&pair, TARGET_DIED);
		assert_int_equal(has_note(&pair, "its ring's head makes no sense"), 1);
		assert_int_equal(counts_of(&pair).delivered, 1);
		finish(&pair);
	}
}

static void a_kill_within_an_event_leaves_it_uncommitted(void **state)
{
	for (int is_counted = 0; is_counted < 2; is_counted++) {
		struct fake_thread thread;
		struct pair pair;

		(void)state;
		start(&pair);
		fake_thread_open(&thread, &pair.channel, 0, 1, 0);
		fake_alloc(&thread, 5, 0x1000, 8, 1);
		fake_begin(&thread);
		torsh_codec_put_free(&thread.codec, thread.begin, 6, 0x1000, 0);
		/* Killed just before, or just after, the event was counted. */
		if (is_counted)
			atomic_store(&thread.ring.slot->produced, 2);
		fake_thread_leave(&thread);
		end(&pair, TARGET_DIED);
		assert_int_equal(counts_of(&pair).produced, 1);
		assert_int_equal(counts_of(&pair).delivered, 1);
		assert_int_equal(counts_of(&pair).uncommitted, 1);
		assert_int_equal(pair.target->state.heap.tracker.n, 1);
		finish(&pair);
	}
}

static void a_kill_within_a_realloc_leaves_the_block_as_it_was(void **state)
{
	struct fake_thread thread;
	struct pair pair;

	(void)state;
	start(&pair);
	fake_thread_open(&thread, &pair.channel, 0, 1, 0);
	fake_alloc(&thread, 5, 0x1000, 88, 1);
	fake_begin(&thread);
	fake_commit_free(&thread, 6, 0x1000, 1);
	fake_thread_leave(&thread);
	end(&pair, TARGET_DIED);
	assert_int_equal(pair.target->state.heap.tracker.bytes, 88);
	assert_int_equal(pair.target->state.heap.live.n_blocks, 1);
	assert_int_equal(pair.target->state.heap.frees, 0);
	finish(&pair);
}

static void garbage_on_a_ring_is_counted_as_dropped(void **state)
{
	struct fake_thread broken, whole;
	struct pair pair;

	(void)state;
	start(&pair);
	fake_thread_open(&broken, &pair.channel, 0, 77, 0);
	fake_thread_open(&whole, &pair.channel, 1, 78, 0);
	fake_alloc(&broken, 5, 0x1000, 8, 1);
	fake_alloc(&broken, 6, 0x2000, 8, 1);
	fake_begin(&broken);
	memset(broken.begin, 0, 100); /* no event begins with 0 */
	torsh_ring_commit(&broken.ring, broken.begin, broken.begin + 100);
	drain(&pair);
	fake_alloc(&broken, 8, 0x3000, 8, 1);
	fake_alloc(&whole, 9, 0x4000, 8, 1);
	drain(&pair);
	/* Its producer still finds room. */
	assert_int_equal(atomic_load(&broken.ring.slot->tail), broken.ring.head);
	fake_thread_leave(&broken);
	fake_thread_leave(&whole);
	end(&pair, TARGET_DIED);
	assert_int_equal(counts_of(&pair).produced, 5);
	assert_int_equal(counts_of(&pair).delivered, 3);
	assert_int_equal(counts_of(&pair).dropped, 2);
	assert_int_equal(has_note(&pair, "thread 77 (t-77): it sent bytes that are no event"), 1);
	finish(&pair);
}

static void a_stack_that_can_not_be_breaks_only_its_ring(void **state)
{
	static const struct {
		uint32_t pop, n, id;
		const char *note;
	} changes[] = {
		{2, 0, 0, "it left more frames than its stack had"},
		{0, 1, FAKE_ADDRESSES, "it named an address that the channel doesn't have"},
		{0, 1, (1 << 24) - 1, "it named an address that the channel doesn't have"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		const struct event_alloc alloc = {.address = 0x1000, .size = 1, .usable = 24};
		struct fake_thread thread;
		struct pair pair;

		start(&pair);
		fake_thread_open(&thread, &pair.channel, 0, 1, 0);
		fake_alloc(&thread, 1, 0x2000, 8, 1);
		fake_begin(&thread);
		fake_commit_alloc(&thread, 2, &alloc, changes[i].pop, changes[i].n, &changes[i].id);
		fake_thread_leave(&thread);
		end(&pair, TARGET_DIED);
		assert_int_equal(counts_of(&pair).delivered, 1);
		assert_int_equal(counts_of(&pair).dropped, 1);
		assert_int_equal(has_note(&pair, changes[i].note), 1);
		finish(&pair);
	}
}

static void a_stack_may_be_as_deep_as_agents_go_and_no_deeper(void **state)
{
	uint8_t payload[8 + 3 * CODEC_STACK_IDS + 1];
	uint32_t ids[CODEC_STACK_IDS], depth = 0;
	struct fake_thread thread;
	struct pair pair;

	(void)state;
	for (uint32_t i = 0; i < CODEC_STACK_IDS; i++)
		ids[i] = 1 + i;
	start(&pair);
	fake_thread_open(&thread, &pair.channel, 0, 1, 0);
	for (uint64_t stamp = 1; depth <= STACK_DEPTH_MAX; stamp++) {
		uint32_t n = torsh_codec_pack_stack(0, 200, ids, payload);

		fake_begin(&thread);
		torsh_ring_commit(&thread.ring, thread.begin,
				  torsh_codec_put_cold(&thread.codec, thread.begin, stamp,
						       EVENT_STACK, payload, n));
		drain(&pair);
		depth += 200;
		if (depth > STACK_DEPTH_MAX)
			break;
		assert_int_equal(pair.target->consumers[0]->depth, depth);
		assert_null(pair.target->consumers[0]->broken);
	}
	assert_string_equal(pair.target->consumers[0]->broken, "its stack grew too deep");
	fake_thread_leave(&thread);
	finish(&pair);
}

static void a_head_that_makes_no_sense_holds_up_nobody(void **state)
{
	static const uint64_t heads[] = {UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63,
					 (FAKE_RING + 2) << 1,
					 (FAKE_RING + FAKE_LARGE_RING + 2) << 1};

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct fake_thread thread;
		struct pair pair;

		start(&pair);
		fake_thread_open(&thread, &pair.channel, 0, 1, 0);
		atomic_store(&thread.ring.slot->head, heads[i]);
		atomic_store(&thread.ring.slot->produced, UINT64_MAX);
		for (int k = 0; k < 3; k++)
			drain(&pair);
		assert_int_equal(atomic_load(&thread.ring.slot->tail), heads[i] >> 1);
		fake_thread_leave(&thread);
		end(&pair, TARGET_DIED);
		assert_int_equal(has_note(&pair, "its ring's head makes no sense"), 1);
		finish(&pair);
	}
}

static void a_layout_that_can_not_be_is_refused(void **state)
{
	static const struct {
		size_t at;
		uint64_t value;
		size_t n;
	} damages[] = {
		{offsetof(struct channel_header, magic), 'x', 1},
		{offsetof(struct channel_header, version), 99, 4},
		{offsetof(struct channel_header, header_bytes), CHANNEL_HEADER_BYTES + 1, 4},
		{offsetof(struct channel_header, threads_offset), 0, 8},
		{offsetof(struct channel_header, threads_offset), CHANNEL_HEADER_BYTES + 64, 8},
		{offsetof(struct channel_header, modules_offset), UINT64_MAX - 4095, 8},
		{offsetof(struct channel_header, addresses_offset), UINT64_C(1) << 40, 8},
		{offsetof(struct channel_header, text_offset), 4096, 8},
		{offsetof(struct channel_header, rings_offset), CHANNEL_HEADER_BYTES, 8},
		{offsetof(struct channel_header, total_bytes), 1, 8},
		{offsetof(struct channel_header, n_thread_slots), 0, 4},
		{offsetof(struct channel_header, n_thread_slots), UINT32_MAX, 4},
		{offsetof(struct channel_header, n_module_slots), UINT32_MAX, 4},
		{offsetof(struct channel_header, n_address_slots), CHANNEL_ADDRESSES + 1, 4},
		{offsetof(struct channel_header, n_text_bytes), UINT32_MAX, 4},
		{offsetof(struct channel_header, ring_bytes), 0, 4},
		{offsetof(struct channel_header, n_large_rings), N_SLOTS + 1, 4},
		{offsetof(struct channel_header, large_rings_offset), UINT64_MAX - 4095, 8},
		{offsetof(struct channel_header, ring_bytes), 3 * FAKE_RING, 4},
		{offsetof(struct channel_header, ring_bytes), UINT32_C(1) << 31, 4},
		{offsetof(struct channel_header, clock), 3, 4},
		{offsetof(struct channel_header, stamp_shift), 5, 4},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		struct fake_channel channel;
		struct target *target;

		fake_channel_create(&channel, N_SLOTS);
		memcpy((char *)channel.header + damages[i].at, &damages[i].value, damages[i].n);
		assert_int_equal(torsh_target_create(&target, dup(channel.fd), getpid(), -1),
				 -EPROTO);
		assert_int_equal(atomic_load(&channel.header->writer_state),
				 CHANNEL_WRITER_REFUSED);
		fake_channel_destroy(&channel);
	}
}

/* Once mapped it can't be cut short under the writer's feet. */
static void a_channel_is_sealed_against_shrinking(void **state)
{
	struct pair pair;

	(void)state;
	start(&pair);
	assert_int_equal(ftruncate(pair.channel.fd, 4096), -1);
	assert_int_equal(errno, EPERM);
	finish(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_of_a_ring_that_can_not_be_breaks_it),
		cmocka_unit_test(a_kill_within_an_event_leaves_it_uncommitted),
		cmocka_unit_test(a_kill_within_a_realloc_leaves_the_block_as_it_was),
		cmocka_unit_test(garbage_on_a_ring_is_counted_as_dropped),
		cmocka_unit_test(a_stack_that_can_not_be_breaks_only_its_ring),
		cmocka_unit_test(a_stack_may_be_as_deep_as_agents_go_and_no_deeper),
		cmocka_unit_test(a_head_that_makes_no_sense_holds_up_nobody),
		cmocka_unit_test(a_layout_that_can_not_be_is_refused),
		cmocka_unit_test(a_channel_is_sealed_against_shrinking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
