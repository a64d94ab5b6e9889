/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The channel's slots. Free ones form a stack, so that the slot freed last, which still has its
 * pages mapped, is taken next. See PROTOCOL.md.
 */
#include "agent/producer/channel.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/prctl.h>

#include "shim/libc/thread.h"

/* slots that the channel's first thread takes */
#define N_NAMED 2

/* Pop the top of the free slots; -ENOENT if there is none. */
static int pop_free(struct channel *channel)
{
	_Atomic uint64_t *stack = &channel->header->free_slots;
	/* Acquire pairs with the release in the push: the slot's tail is final. */
	uint64_t word = atomic_load_explicit(stack, memory_order_acquire);

	for (;;) {
		uint32_t uppermost = (uint32_t)word, next;
		struct thread_slot *slot =
			uppermost ? torsh_channel_slot(channel, uppermost - 1) : NULL;

		if (!slot)
			return -ENOENT;
		next = atomic_load_explicit(&slot->next_free, memory_order_relaxed);
		if (atomic_compare_exchange_weak_explicit(
			    stack, &word, torsh_channel_free_word(word, next), memory_order_acquire,
			    memory_order_acquire))
			return (int)uppermost - 1;
	}
}

/* Take a slot that was never used. */
static int claim_new(struct channel *channel)
{
	_Atomic uint32_t *n_threads = &channel->header->n_threads;
	uint32_t n = atomic_load_explicit(n_threads, memory_order_relaxed);

	while (n < channel->header->n_thread_slots) {
		if (atomic_compare_exchange_weak_explicit(
			    n_threads, &n, n + 1, memory_order_release, memory_order_relaxed))
			return (int)n;
	}
	return -ENOENT;
}

static uint32_t count_ended(const struct channel_header *header)
{
	uint32_t n_freed = atomic_load_explicit(&header->n_freed, memory_order_acquire);

	return atomic_load_explicit(&header->n_closed, memory_order_acquire) - n_freed;
}

int torsh_channel_take_slot(struct channel *channel, enum thread_slot_kind kind,
			    uint32_t most_ended)
{
	uint32_t n_ended = count_ended(channel->header);
	int index = pop_free(channel);
	struct thread_slot *slot;

	if (index < 0 && n_ended < most_ended)
		index = claim_new(channel);
	if (index < 0)
		return n_ended ? -EAGAIN : -ENOSPC;
	slot = torsh_channel_slot(channel, (uint32_t)index);
	/* Without its line the slot can't even be returned; the numbers below it stay valid. */
	if (!slot)
		return -ENOSPC;
	atomic_store_explicit(&slot->state, THREAD_SLOT_CLAIMED, memory_order_relaxed);
	slot->kind = kind;
	slot->tid = (uint32_t)torsh_thread_tid();
	slot->name[0] = '\0';
	if (index < N_NAMED && !slot->use)
		TORSH_SYS(SYS_prctl, PR_GET_NAME, slot->name, 0, 0, 0, 0);
	return index;
}

void torsh_channel_return_slot(struct channel *channel, int index)
{
	struct thread_slot *slot = torsh_channel_slot(channel, (uint32_t)index);

	atomic_store_explicit(&slot->state, THREAD_SLOT_FREE, memory_order_relaxed);
	torsh_channel_push_free(channel->header, slot, (uint32_t)index);
}

int torsh_channel_map_ring(const struct channel *channel, int slot, bool is_large,
			   struct ring *ring)
{
	const struct channel_header *header = channel->header;
	size_t n_bytes = is_large ? header->ring_bytes : CHANNEL_RING_SMALL_BYTES;
	uint64_t offset = (is_large ? header->large_rings_offset : header->rings_offset) +
			  (uint64_t)slot * n_bytes;
	uint8_t *place = torsh_channel_map(channel, offset, n_bytes, CHANNEL_RING_MIRROR_BYTES);

	if (!place)
		return -ENOMEM;
	TORSH_SYS(SYS_madvise, place, n_bytes + CHANNEL_RING_MIRROR_BYTES, MADV_DONTFORK, 0, 0, 0);
	ring->bytes = place;
	ring->mask = n_bytes - 1;
	return 0;
}

void torsh_channel_unmap_ring(const struct ring *ring)
{
	torsh_sys_munmap(ring->bytes, ring->mask + 1 + CHANNEL_RING_MIRROR_BYTES);
}

void torsh_channel_open_slot(struct channel *channel, int index, struct ring *ring,
			     uint64_t base_stamp)
{
	struct thread_slot *slot = torsh_channel_slot(channel, (uint32_t)index);

	ring->slot = slot;
	ring->head = atomic_load_explicit(&slot->tail, memory_order_relaxed);
	ring->room_until = 0;
	ring->n_events = 0;
	slot->base_stamp = base_stamp;
	slot->use++;
	atomic_store_explicit(&slot->large_from, CHANNEL_NOT_LARGE, memory_order_relaxed);
	atomic_store_explicit(&slot->head, ring->head << 1, memory_order_relaxed);
	atomic_store_explicit(&slot->produced, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->dropped, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->waited_ns, 0, memory_order_relaxed);
	/*
	 * Pairs with the acquire in the writer that finds the slot active: the identity above is
	 * complete.
	 */
	atomic_store_explicit(&slot->state, THREAD_SLOT_ACTIVE, memory_order_release);
}

void torsh_channel_close_slot(struct channel *channel, struct thread_slot *slot)
{
	/* Counted first: a thread that finds no slot can then rely on one to become free. */
	atomic_fetch_add_explicit(&channel->header->n_closed, 1, memory_order_relaxed);
	/* Pairs with the acquire in the writer, which drains up to the last head. */
	atomic_store_explicit(&slot->state, THREAD_SLOT_CLOSED, memory_order_release);
	/* The writer frees the slot only after it has drained it. */
	torsh_channel_ring_doorbell(channel->header);
}
