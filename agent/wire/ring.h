/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One ring: a single producer (a thread of the target) and a single consumer (the writer), over a
 * thread_slot and a power of two of bytes of the channel. The producer maps the ring's start again
 * after its end, so that no event ever wraps.
 *
 * Producer, one event:
 *	torsh_ring_begin	marks the ring busy; from now on the writer folds nothing younger
 *				than this ring's last event until the new one is there
 *	(stamp, encode at the returned place)
 *	torsh_ring_commit	publishes it
 * Consumer: torsh_ring_committed, copy, torsh_ring_consume.
 */
#ifndef TORSH_AGENT_WIRE_RING_H
#define TORSH_AGENT_WIRE_RING_H

#include <stdbool.h>

#include "agent/wire/channel.h"

struct ring {
	struct thread_slot *slot;
	/* producer: mask + 1 bytes, and a mirror of the first CHANNEL_RING_MIRROR_BYTES */
	uint8_t *bytes;
	uint64_t mask; /* size - 1 */
	uint64_t head; /* producer: committed so far; consumer: consumed so far */
	/* producer: head may grow to this without another look at the consumer's tail */
	uint64_t room_until;
	uint64_t n_events; /* producer: how many were committed */
};

/* The position of the next event's bytes. */
static inline uint8_t *torsh_ring_place(const struct ring *ring)
{
	return ring->bytes + (ring->head & ring->mask);
}

/* Mark the ring busy and return the position of the next event. The caller has checked the room. */
static inline uint8_t *torsh_ring_begin(struct ring *ring)
{
	/*
	 * Visible to the writer within the store buffer's delay: it allows for that
	 * (tools/writer/input/order.h).
	 */
	atomic_store_explicit(&ring->slot->head, ring->head << 1 | 1, memory_order_relaxed);
	return torsh_ring_place(ring);
}

/* Publish what lies between begin and end. Pairs with the acquire in torsh_ring_committed. */
static inline void torsh_ring_commit(struct ring *ring, const uint8_t *begin, const uint8_t *end)
{
	ring->head += (uint64_t)(end - begin);
	atomic_store_explicit(&ring->slot->produced, ++ring->n_events, memory_order_relaxed);
	atomic_store_explicit(&ring->slot->head, ring->head << 1, memory_order_release);
}

/* Cancel the event begun. */
static inline void torsh_ring_cancel(struct ring *ring)
{
	atomic_store_explicit(&ring->slot->head, ring->head << 1, memory_order_release);
}

/*
 * Whether there is room for n_bytes. Reads the consumer's tail only when the cached room is used
 * up.
 */
static inline bool torsh_ring_has_room(struct ring *ring, uint32_t n_bytes)
{
	if (__builtin_expect(ring->head + n_bytes <= ring->room_until, 1))
		return true;
	/*
	 * Pairs with the release in torsh_ring_consume: the consumer has copied what is overwritten
	 * now.
	 */
	ring->room_until =
		atomic_load_explicit(&ring->slot->tail, memory_order_acquire) + ring->mask + 1;
	return ring->head + n_bytes <= ring->room_until;
}

/*
 * Bytes that the producer has committed and the consumer (at ring->head) not consumed; *is_busy: an
 * event is in progress. Returns -1 for more than n_most, which no valid producer stores.
 */
static inline int64_t torsh_ring_committed(const struct ring *ring, uint64_t n_most, bool *is_busy)
{
	uint64_t head = atomic_load_explicit(&ring->slot->head, memory_order_acquire);
	uint64_t n_bytes = (head >> 1) - ring->head;

	*is_busy = head & 1;
	return n_bytes <= n_most ? (int64_t)n_bytes : -1;
}

/* The next n_bytes were copied: the producer may overwrite them. */
static inline void torsh_ring_consume(struct ring *ring, uint64_t n_bytes)
{
	ring->head += n_bytes;
	atomic_store_explicit(&ring->slot->tail, ring->head, memory_order_release);
}

#endif
