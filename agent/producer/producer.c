/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The producer off its hot path: backpressure, dropped events, cold events. lifecycle.c creates and
 * closes producers.
 */
#include "agent/producer/producer.h"

#include <errno.h>
#include <stdbool.h>

#include "agent/process/callbacks.h"
#include "agent/process/memory_lock.h"
#include "agent/process/process.h"
#include "agent/producer/backpressure.h"
#include "agent/producer/counter.h"
#include "agent/producer/rings.h"

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static bool writer_is_dead(struct channel_header *header)
{
	uint32_t attached = CHANNEL_WRITER_ATTACHED;

	switch (atomic_load_explicit(&header->writer_state, memory_order_relaxed)) {
	case CHANNEL_WRITER_REFUSED:
	case CHANNEL_WRITER_GONE:
	case CHANNEL_WRITER_CLOSED:
		return true;
	}
	if (!torsh_agent_is_abandoned())
		return false;
	/* The state of a writer that never attached stays NONE: the message at exit differs. */
	atomic_compare_exchange_strong_explicit(&header->writer_state, &attached,
						CHANNEL_WRITER_GONE, memory_order_relaxed,
						memory_order_relaxed);
	return true;
}

void torsh_producer_settle_ring(struct producer *producer)
{
	struct ring *ring = &producer->ring;

	if (atomic_load_explicit(&ring->slot->large_from, memory_order_relaxed) ==
	    CHANNEL_NOT_LARGE)
		return;
	ring->bytes = producer->large;
	ring->mask = torsh_process->channel.header->ring_bytes - 1;
}

/* Continue in the slot's large ring; the writer reads the rest of the small one first. */
static void enlarge(struct producer *producer)
{
	struct channel *channel = &torsh_process->channel;
	struct ring small = producer->ring, large = producer->ring;

	if (producer->may_not_grow || small.mask + 1 > CHANNEL_RING_SMALL_BYTES)
		return;
	producer->may_not_grow = true;
	if (producer->slot >= channel->header->n_large_rings || torsh_memory_lock_is_limited() ||
	    torsh_channel_map_ring(channel, (int)producer->slot, 1, &large))
		return;
	producer->large = large.bytes;
	atomic_signal_fence(memory_order_seq_cst);
	/* Pairs with the acquire of a head beyond it. */
	atomic_store_explicit(&small.slot->large_from, small.head, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	torsh_producer_settle_ring(producer);
	torsh_rings_drop(producer->slot, &small);
}

/*
 * Extend room_until by at most a quarter of the ring, so that a sleeping writer is woken in time.
 */
static bool grant_room(struct producer *producer)
{
	struct ring *ring = &producer->ring;
	/* Pairs with the release in torsh_ring_consume. */
	uint64_t tail = atomic_load_explicit(&ring->slot->tail, memory_order_acquire), size, end,
		 step;

	if (ring->head - tail >= CHANNEL_RING_SMALL_BYTES / 2)
		enlarge(producer);
	size = ring->mask + 1;
	end = tail + size;
	step = ring->head + size / 4;
	if (ring->head - tail >= size / 4)
		torsh_channel_ring_doorbell(torsh_process->channel.header);
	if (ring->head + PRODUCER_ROOM > end)
		return false;
	ring->room_until = step + PRODUCER_ROOM < end ? step + PRODUCER_ROOM : end;
	return true;
}

static struct writer_progress read_writer_progress(const struct channel_header *header)
{
	return (struct writer_progress){
		.heartbeat = atomic_load_explicit(&header->heartbeat, memory_order_relaxed),
		.cpu_ns = atomic_load_explicit(&header->writer_cpu_ns, memory_order_relaxed),
	};
}

bool torsh_producer_await(const struct producer_await *await, uint64_t *waited_ns)
{
	struct channel_header *header = torsh_process->channel.header;
	struct writer_progress progress = read_writer_progress(header);
	uint64_t start = monotonic_ns();
	struct backpressure backpressure;
	bool is_there = false;

	if (progress.heartbeat + 1 ==
	    atomic_load_explicit(&torsh_process->stuck_at, memory_order_relaxed))
		return false;
	torsh_backpressure_begin(&backpressure, start, progress);
	while (!writer_is_dead(header)) {
		await->await(await->context);
		is_there = await->is_there(await->context);
		if (is_there)
			break;
		progress = read_writer_progress(header);
		if (!torsh_backpressure_lasts(&backpressure, monotonic_ns(), progress))
			break;
	}
	*waited_ns += monotonic_ns() - start;
	atomic_store_explicit(&torsh_process->stuck_at, is_there ? 0 : progress.heartbeat + 1,
			      memory_order_relaxed);
	return is_there;
}

static bool has_room(void *producer)
{
	return grant_room(producer);
}

/* Sleep until the writer has moved this ring's tail, or for one step. */
static void await_progress(void *context)
{
	struct producer *producer = context;
	struct thread_slot *slot = producer->ring.slot;
	uint32_t progress = atomic_load_explicit(&slot->progress, memory_order_acquire);

	/* Sequentially consistent, as the consumer's exchange: one side sees the other. */
	atomic_store_explicit(&slot->producer_waits, 1, memory_order_seq_cst);
	atomic_thread_fence(memory_order_seq_cst);
	if (grant_room(producer))
		return;
	torsh_channel_ring_doorbell(torsh_process->channel.header);
	torsh_sys_futex_wait(&slot->progress, progress, BACKPRESSURE_STEP_NS);
}

/* Wait until the writer has made room; returns false if it did not. */
static bool wait_for_room(struct producer *producer)
{
	const struct producer_await await = {
		.is_there = has_room, .await = await_progress, .context = producer};
	struct thread_slot *slot = producer->ring.slot;
	uint64_t waited_ns = atomic_load_explicit(&slot->waited_ns, memory_order_relaxed);
	bool is_there = torsh_producer_await(&await, &waited_ns);

	atomic_store_explicit(&slot->producer_waits, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->waited_ns, waited_ns, memory_order_relaxed);
	return is_there;
}

/* Write one cold event; the caller has checked the room. */
static void put_cold(struct producer *producer, uint32_t id, const void *payload, uint32_t n_bytes)
{
	uint8_t *begin = torsh_ring_begin(&producer->ring), *end;

	end = torsh_codec_put_cold(&producer->codec, begin, torsh_producer_stamp(producer), id,
				   payload, n_bytes);
	torsh_ring_commit(&producer->ring, begin, end);
	producer->n_before = producer->ring.n_events; /* the hook's own event is still to come */
}

/* The decoder's state may differ: both sides restart from this stamp. */
static void put_restart(struct producer *producer)
{
	struct event event = {.id = EVENT_RESTART,
			      .restart = {.base_stamp = torsh_producer_stamp(producer)}};
	uint8_t payload[CODEC_PAYLOAD_MAX];

	torsh_codec_start(&producer->codec, event.restart.base_stamp);
	put_cold(producer, EVENT_RESTART, payload, torsh_codec_pack(&event, payload));
	producer->is_torn = false;
}

static void put_lost(struct producer *producer)
{
	struct event event = {
		.id = EVENT_LOST,
		.lost =
			{
				.allocs = producer->lost[LOSS_ALLOC],
				.frees = producer->lost[LOSS_FREE],
				.others = producer->lost[LOSS_OTHER],
			},
	};
	uint8_t payload[CODEC_PAYLOAD_MAX];

	for (int i = 0; i < N_LOSSES; i++)
		producer->lost[i] = 0;
	producer->has_lost = false;
	put_cold(producer, EVENT_LOST, payload, torsh_codec_pack(&event, payload));
}

/*
 * Whether it is open in the recording that goes on, or could be opened in that. Nothing is sent
 * while the process rests; the hook that finds it armed is not recorded.
 */
static bool keeps_up(struct producer *producer)
{
	uint32_t generation =
		atomic_load_explicit(&torsh_process->generation, memory_order_acquire);

	if (__builtin_expect(generation == producer->generation && !(generation & 1), 1))
		return true;
	if (!(generation & 1))
		return torsh_callbacks.producer_renews(producer);
	torsh_callbacks.process_armed();
	return false;
}

/* Pairs with the fence in torsh_producers_expire: one side sees the other's store. */
static bool has_expired(struct producer *producer)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&torsh_process->generation,
						  memory_order_relaxed) == producer->generation,
			     1))
		return false;
	producer->ring.room_until = 0;
	return true;
}

bool torsh_producer_make_room(struct producer *producer)
{
	for (;;) {
		if (!keeps_up(producer) || (!grant_room(producer) && !wait_for_room(producer)))
			return false;
		if (has_expired(producer))
			continue;
		if (!producer->has_lost && !producer->is_torn)
			return true;
		if (producer->is_torn)
			put_restart(producer);
		else
			put_lost(producer);
		if (producer->ring.head + PRODUCER_ROOM <= producer->ring.room_until)
			return true;
	}
}

void torsh_producer_drop(struct producer *producer, enum producer_loss what)
{
	struct thread_slot *slot = producer->ring.slot;

	/* the next event takes the slow path, which reports the loss */
	producer->ring.room_until = 0;
	/* Nothing is lost while the process rests: it is not recorded. */
	if (atomic_load_explicit(&torsh_process->generation, memory_order_relaxed) & 1)
		return;
	producer->lost[what]++;
	producer->has_lost = true;
	atomic_store_explicit(&slot->dropped,
			      atomic_load_explicit(&slot->dropped, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/* Packed in place: the ids are too large for a signal handler's stack. */
static void put_frames(struct producer *producer, uint32_t pop, uint32_t n, const uint32_t *ids)
{
	uint8_t *begin = torsh_ring_begin(&producer->ring), *end;
	uint32_t n_bytes = torsh_codec_pack_stack(pop, n, ids, begin + CODEC_COLD_HEAD);

	end = torsh_codec_end_cold(&producer->codec, begin, torsh_producer_stamp(producer),
				   EVENT_STACK, n_bytes);
	torsh_ring_commit(&producer->ring, begin, end);
	producer->n_before = producer->ring.n_events;
}

int torsh_producer_put_stack(struct producer *producer, const struct stack_delta *delta)
{
	uint32_t pop = delta->pop == STACK_POP_ALL ? CODEC_POP_ALL : delta->pop, done = 0;
	uint32_t generation = producer->generation; /* the delta is to what was sent in it */

	do {
		uint32_t n = delta->n_push - done < CODEC_STACK_IDS ? delta->n_push - done
								    : CODEC_STACK_IDS;

		if (!torsh_producer_has_room(producer) || generation != producer->generation)
			goto no_room;
		put_frames(producer, pop, n, delta->push + done);
		pop = 0;
		done += n;
	} while (done < delta->n_push);
	if (torsh_producer_has_room(producer) && generation == producer->generation)
		return 0;
no_room:
	torsh_stack_reset(producer->stack);
	return -1;
}

void *torsh_producer_pages(struct producer *producer, size_t n_bytes)
{
	for (uint32_t i = 0; i < PRODUCER_PAGES; i++) {
		if (producer->pages[i].at)
			continue;
		producer->pages[i] =
			(struct producer_pages){.at = torsh_sys_pages(n_bytes), .n_bytes = n_bytes};
		return producer->pages[i].at;
	}
	return NULL;
}

int torsh_producer_grow_pages(struct producer *producer, void **at, size_t n_bytes)
{
	struct producer_pages *pages = producer->pages, former;
	void *larger = torsh_sys_pages(n_bytes);

	if (!larger)
		return -ENOMEM;
	while (pages->at != *at)
		pages++;
	former = *pages;
	memcpy(larger, former.at, former.n_bytes);
	/*
	 * Published before the old pages are unmapped: a signal handler may abandon this function.
	 */
	*at = larger;
	*pages = (struct producer_pages){.at = larger, .n_bytes = n_bytes};
	torsh_sys_munmap(former.at, former.n_bytes);
	return 0;
}

static __attribute__((noinline)) void create_python(struct producer *producer)
{
	producer->python = torsh_producer_pages(producer, torsh_python_bytes());
	/* The main thread runs all imports: its tables, looked up by hash, fill. */
	if (producer->python && producer->tid == torsh_process->pid)
		torsh_sys_populate(producer->python, torsh_python_bytes());
}

/* Nothing is left to do after the merge: it is a jump. */
void torsh_producer_add_python(struct producer *producer, struct stack_delta *delta)
{
	if (__builtin_expect(!producer->python, 0))
		create_python(producer);
	if (producer->python)
		torsh_python_merge(producer->python, producer->stack,
				   producer->tid == torsh_process->pid, delta);
}

/* Inlined into its callers: they may run on a signal handler's small stack. */
static inline __attribute__((always_inline)) bool hold(struct producer *producer, const void *frame,
						       uint64_t *stamp)
{
	if (!torsh_producer_has_room(producer))
		goto lose;
	if (frame) {
		struct stack_delta delta;

		torsh_producer_capture(producer, frame, &delta);
		if ((delta.pop | delta.n_push) && torsh_producer_put_stack(producer, &delta))
			goto lose;
	}
	torsh_ring_begin(&producer->ring);
	*stamp = torsh_producer_stamp(producer);
	return true;
lose:
	torsh_producer_drop(producer, LOSS_OTHER);
	return false;
}

bool torsh_producer_hold(struct producer *producer, const void *frame, uint64_t *stamp)
{
	return hold(producer, frame, stamp);
}

void torsh_producer_event_at(struct producer *producer, const struct event *event, uint64_t stamp)
{
	uint8_t *begin = torsh_ring_place(&producer->ring), *end;

	end = torsh_codec_end_cold(&producer->codec, begin, stamp, event->id,
				   torsh_codec_pack(event, begin + CODEC_COLD_HEAD));
	torsh_ring_commit(&producer->ring, begin, end);
}

void torsh_producer_release(struct producer *producer)
{
	torsh_ring_cancel(&producer->ring);
}

void torsh_producer_event(struct producer *producer, const struct event *event, const void *frame)
{
	uint64_t stamp;

	if (hold(producer, frame, &stamp))
		torsh_producer_event_at(producer, event, stamp);
}

void torsh_producer_event_interrupted(struct producer *producer, const struct event *event,
				      const struct cpu_caller *at)
{
	struct stack_delta delta;

	if (!torsh_producer_has_room(producer))
		goto lose;
	torsh_stack_capture_interrupted(producer->stack, at, &delta);
	if (atomic_load_explicit(&torsh_cpython_is_there, memory_order_acquire))
		torsh_producer_add_python(producer, &delta);
	if ((delta.pop | delta.n_push) && torsh_producer_put_stack(producer, &delta))
		goto lose;
	torsh_ring_begin(&producer->ring);
	torsh_producer_event_at(producer, event, torsh_producer_stamp(producer));
	return;
lose:
	torsh_producer_drop(producer, LOSS_OTHER);
}
