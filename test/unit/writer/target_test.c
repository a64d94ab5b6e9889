/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the writer does with a channel over its life: slots come and go, rings run full, processes
 * end in the middle of an event. produced = delivered + dropped holds after any end.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/unit/fixtures/channel_fixture.h"
#include "test/unit/fixtures/random.h"
#include "tools/writer/input/target.h"

#define N_SLOTS 4u

struct pair {
	struct fake_channel channel;
	struct target *target;
};

static void start(struct pair *pair)
{
	const struct clock_conversion clock = {0};

	memset(pair, 0, sizeof(*pair));
	fake_channel_create(&pair->channel, N_SLOTS);
	assert_int_equal(torsh_target_create(&pair->target, dup(pair->channel.fd), getpid(), -1),
			 0);
	torsh_target_begin(pair->target, &clock);
}

static void finish(struct pair *pair)
{
	torsh_target_destroy(pair->target);
	fake_channel_destroy(&pair->channel);
}

static struct target_pass drain(struct pair *pair)
{
	return torsh_target_drain(pair->target, 1, UINT64_MAX);
}

static void end(struct pair *pair, enum target_fate fate)
{
	atomic_store(&pair->target->fate, fate);
	for (int i = 0; i < 1000 && !pair->target->is_drained; i++)
		drain(pair);
	assert_int_equal(pair->target->is_drained, 1);
}

static struct target_counts counts_of(const struct pair *pair)
{
	struct target_counts counts = torsh_target_counts(pair->target);

	assert_int_equal(counts.produced, counts.delivered + counts.dropped);
	return counts;
}

static int has_note(const struct pair *pair, const char *part)
{
	for (uint32_t i = 0; i < pair->target->state.n_notes; i++) {
		if (strstr(pair->target->state.notes[i], part))
			return 1;
	}
	return 0;
}

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

/* Each is produced and dropped, and has its cause. */
static void what_no_ring_had_is_counted(void **state)
{
	uint64_t losses[N_WRITER_LOSSES];
	struct fake_thread thread;
	struct pair pair;

	(void)state;
	start(&pair);
	fake_thread_open(&thread, &pair.channel, 0, 7, 10);
	fake_alloc(&thread, 20, 0x1000, 8, 1);
	atomic_store(&thread.ring.slot->dropped, 3);
	atomic_store(&pair.channel.header->counters[COUNTER_interrupts_lost], 5);
	atomic_store(&pair.channel.header->counters[COUNTER_shared_stream_lost], 6);
	/* no events */
	atomic_store(&pair.channel.header->counters[COUNTER_threads_without_slot], 2);
	fake_thread_leave(&thread);
	end(&pair, TARGET_DIED);
	assert_int_equal(counts_of(&pair).produced, 15);
	assert_int_equal(counts_of(&pair).delivered, 1);
	assert_int_equal(counts_of(&pair).dropped, 14);
	torsh_target_losses(pair.target, losses);
	assert_int_equal(losses[WRITER_LOSS_ring_full], 3);
	assert_int_equal(losses[WRITER_LOSS_ring_damaged], 0);
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

/* The writer was told to end: it takes what is there, and doesn't race with who goes on. */
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

static void what_the_agent_lost_is_counted(void **state)
{
	const struct event lost = {.id = EVENT_LOST,
				   .lost = {.allocs = 3, .frees = 4, .others = 5}};
	struct fake_thread thread;
	struct pair pair;

	(void)state;
	start(&pair);
	fake_thread_open(&thread, &pair.channel, 0, 1, 0);
	fake_begin(&thread);
	fake_commit_cold(&thread, 1, &lost);
	atomic_store(&thread.ring.slot->dropped, 12);
	fake_thread_leave(&thread);
	end(&pair, TARGET_DIED);
	assert_int_equal(counts_of(&pair).dropped, 12);
	assert_int_equal(counts_of(&pair).delivered, 1);
	assert_int_equal(pair.target->state.lost_allocs, 3);
	assert_int_equal(pair.target->state.lost_frees, 4);
	assert_int_equal(pair.target->state.lost_others, 5);
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

static void notes_of_the_writer_that_find_no_room_are_counted(void **state)
{
	struct pair pair;
	struct process_state *process;

	(void)state;
	start(&pair);
	process = &pair.target->state;
	for (uint32_t twice = 0; twice < 2; twice++)
		for (uint32_t i = 0; i < PROCESS_STATE_NOTES_MAX; i++)
			torsh_process_state_note(process, "note %u", i);
	assert_int_equal(process->losses[WRITER_LOSS_notes_unkept], 0);
	assert_false(torsh_target_is_lossy(pair.target));
	torsh_process_state_note(process, "one more");
	assert_int_equal(process->n_notes, PROCESS_STATE_NOTES_MAX);
	assert_int_equal(process->losses[WRITER_LOSS_notes_unkept], 1);
	assert_true(torsh_target_is_lossy(pair.target));
	finish(&pair);
}

/*
 * Within what a thread is in, deeper operators than there is room for seem to be the outer ones:
 * said as a loss.
 */
static void operators_nested_too_deep_are_a_loss(void **state)
{
	uint64_t losses[N_WRITER_LOSSES];
	struct pair pair;

	(void)state;
	start(&pair);
	for (uint32_t i = 0; i < 1u << 17; i++)
		torsh_scopes_take(&pair.target->state.scopes, 0,
				  &(struct event){.id = EVENT_OP_BEGIN,
						  .op_begin = {.name = 1, .record = i}});
	torsh_target_losses(pair.target, losses);
	assert_int_equal(losses[WRITER_LOSS_scopes_unkept], 1u << 16);
	assert_true(torsh_target_is_lossy(pair.target));
	finish(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(notes_of_the_writer_that_find_no_room_are_counted),
		cmocka_unit_test(operators_nested_too_deep_are_a_loss),
		cmocka_unit_test(a_slot_is_used_again_and_again),
		cmocka_unit_test(what_no_ring_had_is_counted),
		cmocka_unit_test(a_thread_goes_on_in_a_large_ring),
		cmocka_unit_test(an_end_of_a_ring_that_can_not_be_breaks_it),
		cmocka_unit_test(a_slot_that_ended_is_the_next_one_taken),
		cmocka_unit_test(a_closed_slot_is_not_freed_before_it_is_folded),
		cmocka_unit_test(many_rings_full_go_through),
		cmocka_unit_test(a_kill_within_an_event_leaves_it_uncommitted),
		cmocka_unit_test(a_kill_within_a_realloc_leaves_the_block_as_it_was),
		cmocka_unit_test(garbage_on_a_ring_is_counted_as_dropped),
		cmocka_unit_test(a_stack_that_can_not_be_breaks_only_its_ring),
		cmocka_unit_test(a_stack_may_be_as_deep_as_agents_go_and_no_deeper),
		cmocka_unit_test(a_head_that_makes_no_sense_holds_up_nobody),
		cmocka_unit_test(a_producer_that_waits_is_woken),
		cmocka_unit_test(a_target_that_is_left_may_go_on_forever),
		cmocka_unit_test(what_the_agent_lost_is_counted),
		cmocka_unit_test(a_fork_notes_what_the_child_inherits),
		cmocka_unit_test(a_layout_that_can_not_be_is_refused),
		cmocka_unit_test(a_channel_is_sealed_against_shrinking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
