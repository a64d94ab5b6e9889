/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/input/ring_consumer.h"

#include <stdbool.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/base/memory.h"
#include "tools/writer/input/order.h"

#define FIRST_BYTES (4u << 10)
#define KEPT_BYTES (64u << 10)
#define MOST_BYTES (4u << 20)

struct ring_consumer *torsh_ring_consumer_create(void)
{
	struct ring_consumer *consumer = torsh_memory_alloc(sizeof(*consumer));

	consumer->path[0] = consumer->hashes[0] = 0;
	consumer->cold = NULL;
	consumer->capacity = FIRST_BYTES;
	consumer->bytes = torsh_memory_new(consumer->capacity, 1);
	return consumer;
}

void torsh_ring_consumer_start(struct ring_consumer *consumer, struct thread_slot *slot,
			       const uint8_t *bytes, uint32_t ring_bytes, uint64_t consumed,
			       uint64_t base_stamp)
{
	consumer->broken = NULL;
	consumer->begin = consumer->end = 0;
	consumer->first = consumer->n_events = 0;
	consumer->depth = 0;
	memset(consumer->changes, 0, sizeof(consumer->changes));
	memset(consumer->hashed, 0, sizeof(consumer->hashed));
	consumer->stack = consumer->site = 0;
	consumer->bound = consumer->busy_head = consumer->busy_since_ns = 0;
	consumer->n_decoded = consumer->n_bytes = 0;
	consumer->heap = (struct heap_producer){0};
	consumer->task = (struct task_thread){0};
	consumer->ring_end = CHANNEL_NOT_LARGE;
	consumer->n_large = 0;
	consumer->is_large = consumer->is_closed = false;
	consumer->ring = (struct ring){
		.slot = slot,
		.bytes = (uint8_t *)(uintptr_t)bytes,
		.mask = ring_bytes - 1,
		.head = consumed,
	};
	torsh_codec_start(&consumer->codec, base_stamp);
}

void torsh_ring_consumer_enlarge(struct ring_consumer *consumer, const uint8_t *bytes,
				 uint32_t ring_bytes)
{
	consumer->ring.bytes = (uint8_t *)(uintptr_t)bytes;
	consumer->ring.mask = ring_bytes - 1;
	consumer->ring_end = CHANNEL_NOT_LARGE;
	consumer->n_large = 0;
	consumer->is_large = true;
}

bool torsh_ring_consumer_is_kept(const struct ring_consumer *consumer)
{
	return consumer->capacity <= KEPT_BYTES;
}

void torsh_ring_consumer_release(struct ring_consumer *consumer)
{
	uint8_t *smaller;

	if (consumer->begin < consumer->end || torsh_ring_consumer_is_kept(consumer))
		return;
	smaller = realloc(consumer->bytes, FIRST_BYTES);
	if (!smaller)
		return;
	consumer->bytes = smaller;
	consumer->capacity = FIRST_BYTES;
	consumer->begin = consumer->end = 0;
}

void torsh_ring_consumer_destroy(struct ring_consumer *consumer)
{
	free(consumer->bytes);
	free(consumer->cold);
	free(consumer);
}

/*
 * Make room for n_bytes after end, unless that requires repeated copies of old bytes or too large a
 * buffer. Returns the available room.
 */
static uint32_t make_room(struct ring_consumer *consumer, uint64_t n_bytes)
{
	uint32_t n_held = consumer->end - consumer->begin;

	if (consumer->capacity - consumer->end < n_bytes && n_held <= consumer->begin) {
		memcpy(consumer->bytes, consumer->bytes + consumer->begin, n_held);
		consumer->begin = 0;
		consumer->end = n_held;
	}
	while (consumer->capacity - consumer->end < n_bytes && consumer->capacity < MOST_BYTES) {
		uint8_t *larger = realloc(consumer->bytes, consumer->capacity * 2);

		if (!larger)
			break;
		consumer->bytes = larger;
		consumer->capacity *= 2;
	}
	return consumer->capacity - consumer->end;
}

static void copy_bytes(struct ring_consumer *consumer, uint32_t n_bytes)
{
	const struct ring *ring = &consumer->ring;
	uint32_t at = (uint32_t)(ring->head & ring->mask),
		 until_wrap = (uint32_t)ring->mask + 1 - at;
	uint32_t n_first = n_bytes < until_wrap ? n_bytes : until_wrap;

	memcpy(consumer->bytes + consumer->end, ring->bytes + at, n_first);
	memcpy(consumer->bytes + consumer->end + n_first, ring->bytes, n_bytes - n_first);
	consumer->end += n_bytes;
}

/*
 * The producer sets producer_waits, then looks at the tail; the writer does it in the opposite
 * order: at least one of them sees the other.
 */
static void wake_producer(struct thread_slot *slot)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&slot->producer_waits, memory_order_relaxed))
		return;
	atomic_store_explicit(&slot->producer_waits, 0, memory_order_relaxed);
	atomic_fetch_add_explicit(&slot->progress, 1, memory_order_release);
	syscall(SYS_futex, &slot->progress, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void consume(struct ring_consumer *consumer, uint64_t n_bytes)
{
	torsh_ring_consume(&consumer->ring, n_bytes);
	consumer->n_bytes += n_bytes;
	wake_producer(consumer->ring.slot);
}

void torsh_ring_consumer_break(struct ring_consumer *consumer, const char *why)
{
	consumer->broken = why;
	consumer->begin = consumer->end = 0;
}

/*
 * Returns true if the producer has been in the middle of an event for longer than ORDER_TIMEOUT_NS.
 */
static bool is_stuck(struct ring_consumer *consumer, uint64_t now_ns)
{
	if (consumer->busy_head != consumer->ring.head || !consumer->busy_since_ns) {
		consumer->busy_head = consumer->ring.head;
		consumer->busy_since_ns = now_ns;
		return false;
	}
	return now_ns - consumer->busy_since_ns > ORDER_TIMEOUT_NS;
}

/*
 * Bytes that are committed and not consumed, see torsh_ring_committed; at most up to the end of the
 * small ring.
 */
static int64_t count_committed(struct ring_consumer *consumer, bool *is_busy, bool *is_beyond)
{
	const struct ring *ring = &consumer->ring;
	uint64_t n_small = ring->mask + 1;
	int64_t n = torsh_ring_committed(ring, n_small + consumer->n_large, is_busy);

	*is_beyond = false;
	if (n < 0 || consumer->is_large)
		return n <= (int64_t)n_small ? n : -1;
	/* Read after the head: bytes after it are in the large ring. */
	if (consumer->ring_end == CHANNEL_NOT_LARGE)
		consumer->ring_end =
			atomic_load_explicit(&ring->slot->large_from, memory_order_acquire);
	if (consumer->ring_end == CHANNEL_NOT_LARGE)
		return n <= (int64_t)n_small ? n : -1;
	if (consumer->ring_end < ring->head || consumer->ring_end - ring->head > n_small)
		return -1;
	*is_beyond = (uint64_t)n > consumer->ring_end - ring->head;
	return *is_beyond ? (int64_t)(consumer->ring_end - ring->head) : n;
}

bool torsh_ring_consumer_is_at_end(const struct ring_consumer *consumer)
{
	return !consumer->is_large && !consumer->broken &&
	       consumer->ring.head == consumer->ring_end;
}

/* An invalid head is followed, so that the producer never waits. */
static void follow_head(struct ring_consumer *consumer, uint64_t limit)
{
	uint64_t head = atomic_load_explicit(&consumer->ring.slot->head, memory_order_acquire) >> 1;

	if (!consumer->broken)
		torsh_ring_consumer_break(consumer, "its ring's head makes no sense");
	consumer->bound = limit;
	if (head != consumer->ring.head)
		consume(consumer, head - consumer->ring.head);
}

uint64_t torsh_ring_consumer_copy(struct ring_consumer *consumer, uint64_t limit, uint64_t now_ns)
{
	bool is_busy;
	bool is_beyond;
	int64_t n_there = count_committed(consumer, &is_busy, &is_beyond);
	uint64_t n_bytes = (uint64_t)n_there;

	if (n_there < 0 || consumer->broken) {
		follow_head(consumer, limit);
		return 0;
	}
	if (n_bytes) {
		uint32_t room = make_room(consumer, n_bytes);

		n_bytes = n_bytes < room ? n_bytes : room;
		copy_bytes(consumer, (uint32_t)n_bytes);
		consume(consumer, n_bytes);
	}
	if (n_bytes < (uint64_t)n_there || is_beyond)
		return n_bytes;
	if (!is_busy)
		consumer->busy_since_ns = 0;
	if (!is_busy || is_stuck(consumer, now_ns))
		consumer->bound = limit;
	return n_bytes;
}

bool torsh_ring_consumer_is_dry(const struct ring_consumer *consumer)
{
	bool is_busy;

	if (consumer->first < consumer->n_events || consumer->begin < consumer->end)
		return false;
	return consumer->broken || torsh_ring_committed(&consumer->ring, UINT64_MAX, &is_busy) == 0;
}

void torsh_ring_consumer_end(struct ring_consumer *consumer)
{
	if (consumer->first == consumer->n_events && consumer->begin < consumer->end)
		torsh_ring_consumer_break(consumer, "it ended within an event");
	consumer->bound = ORDER_NO_BOUND;
}
