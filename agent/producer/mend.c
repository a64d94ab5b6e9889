/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Recovery of producers with an abandoned hook: a signal handler that interrupted the hook jumped
 * out, threw, or was cancelled. The event on the ring, the encoder's state and the cached stack may
 * be incomplete.
 */
#include "agent/modules/memory_probe.h"
#include "agent/producer/counter.h"
#include "agent/producer/producer.h"

/*
 * A frame at the holder's own address has replaced it. Otherwise the stored return address decides:
 * a live frame keeps its own, on any stack. If it is unchanged the hook may still be active further
 * out, or suspended on another stack.
 */
bool torsh_producer_is_abandoned(uint64_t state, const void *frame)
{
	uintptr_t holder = (uintptr_t)(state >> 16), page = 0, found;

	if (state < N_PRODUCER_STATES)
		return false;
	if (holder == (uintptr_t)frame)
		return true;
	return !torsh_probe_read(holder + sizeof(uintptr_t), &page, &found) ||
	       (uint16_t)found != (uint16_t)state;
}

/*
 * Undo the event in progress. Returns whether one was begun and not committed, or the hook entered
 * without sending one.
 */
static bool take_back(struct producer *producer)
{
	struct ring *ring = &producer->ring;
	uint64_t head = atomic_load_explicit(&ring->slot->head, memory_order_relaxed);
	bool is_begun = head & 1;

	/* It may have been counted already: see ring.h. */
	if (is_begun && ring->n_events > producer->n_before)
		atomic_store_explicit(&ring->slot->produced, --ring->n_events,
				      memory_order_relaxed);
	ring->head = head >> 1;
	torsh_ring_cancel(ring);
	atomic_store_explicit(&ring->slot->producer_waits, 0, memory_order_relaxed);
	return is_begun || ring->n_events == producer->n_before;
}

void torsh_producer_mend(struct producer *producer)
{
	bool is_lost = take_back(producer);

	torsh_producer_settle_ring(producer);
	producer->is_torn = true;
	producer->ring.room_until = 0;
	torsh_stack_invalidate(producer->stack);
	if (producer->python)
		torsh_python_invalidate(producer->python);
	if (is_lost)
		torsh_count(COUNTER_events_abandoned);
	producer->n_before = producer->ring.n_events;
}
