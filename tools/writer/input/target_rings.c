/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/input/target_parts.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "tools/writer/input/merge.h"
#include "tools/writer/input/order.h"
#include "tools/writer/input/process_info.h"

#define LEAVING_PASSES 64u /* over the rings of a target that continues to fill them */

void torsh_target_unmap_rings(struct target *target, uint32_t number)
{
	struct target_slot *known = &target->slots[number];

	if (known->ring)
		torsh_view_unmap_ring(&target->view, known->ring, 0);
	if (known->large)
		torsh_view_unmap_ring(&target->view, known->large, 1);
	known->ring = known->large = NULL;
}

/*
 * The name that the agent reports, else the kernel's while the thread exists. Threads of another
 * pid namespace have other numbers here.
 */
static void read_thread_name(const struct target *target, const struct thread_slot *slot,
			     char *name, size_t n)
{
	memcpy(name, slot->name, n);
	name[n - 1] = '\0';
	if (!*name && target->pidfd >= 0 && target->start.pid == (uint32_t)target->pid &&
	    atomic_load_explicit(&slot->state, memory_order_relaxed) == THREAD_SLOT_ACTIVE)
		torsh_process_thread_name(target->pid, (pid_t)slot->tid, name, n);
}

/* Create a ring consumer for a slot that a producer has claimed. */
static struct ring_consumer *open_slot(struct target *target, uint32_t number,
				       struct thread_slot *slot)
{
	struct target_slot *known = &target->slots[number];
	struct ring_consumer *consumer;
	char name[sizeof(slot->name)];

	if (!known->ring)
		known->ring = torsh_view_map_ring(&target->view, number, 0);
	if (!known->ring) {
		torsh_process_state_note(
			&target->state, "the writer had no address space for the ring of a thread");
		return NULL;
	}
	consumer =
		target->n_spare ? target->spare[--target->n_spare] : torsh_ring_consumer_create();
	torsh_ring_consumer_start(consumer, slot, known->ring, CHANNEL_RING_SMALL_BYTES,
				  known->consumed, slot->base_stamp);
	if (number < target->view.n_large_rings)
		consumer->n_large = target->view.ring_bytes;
	read_thread_name(target, slot, name, sizeof(name));
	consumer->slot = number;
	consumer->heap.number = number;
	consumer->thread = torsh_process_state_add_thread(&target->state, slot->tid, name,
							  slot->kind == THREAD_SLOT_INTERRUPT,
							  consumer->codec.stamp);
	known->consumer = consumer;
	consumer->index = target->n_consumers;
	target->consumers[target->n_consumers++] = consumer;
	return consumer;
}

static void forget_consumer(struct target *target, struct ring_consumer *consumer)
{
	struct ring_consumer *last = target->consumers[--target->n_consumers];

	target->consumers[consumer->index] = last;
	last->index = consumer->index;
	target->slots[consumer->slot].consumer = NULL;
	if (target->n_spare < TARGET_SPARE && torsh_ring_consumer_is_kept(consumer))
		target->spare[target->n_spare++] = consumer;
	else
		torsh_ring_consumer_destroy(consumer);
}

/* All its events are folded and no more can arrive. */
static void end_consumer(struct target *target, struct ring_consumer *consumer)
{
	struct target_counts counts = torsh_target_count_consumer(consumer, 1);
	struct folded_thread *thread = &target->state.threads[consumer->thread];
	struct target_slot *known = &target->slots[consumer->slot];

	if (consumer->broken)
		torsh_process_state_note(
			&target->state,
			"thread %u (%s): %s; its later events are counted as dropped", thread->tid,
			thread->name, consumer->broken);
	thread->dropped = counts.dropped;
	torsh_target_add_counts(&target->ended, &counts);
	torsh_target_count_thread(target, consumer);
	if (target->view.heap_rate) {
		known->former_allocs += consumer->heap.allocs;
		known->former_alloc_bytes += consumer->heap.alloc_bytes;
		known->former_frees += consumer->heap.frees;
	}
	torsh_process_state_end_consumer(&target->state, consumer);
	target->slots[consumer->slot].consumed = consumer->ring.head;
}

/*
 * Release the memory of a thread's rings. Slots with low numbers are reused at once, so they keep a
 * little.
 */
static void give_back_rings(struct target *target, const struct ring_consumer *consumer)
{
	uint32_t number = consumer->slot,
		 n_kept = number < CHANNEL_WARM_SLOTS ? CHANNEL_WARM_BYTES : 0;

	if (consumer->is_large)
		torsh_view_clear_ring(&target->view, number, 1, 0);
	else if (consumer->n_bytes > n_kept)
		torsh_view_clear_ring(&target->view, number, 0, n_kept);
	if (!n_kept || consumer->is_large)
		torsh_target_unmap_rings(target, number);
}

/* The slot's next owner starts at the beginning of the small ring, at a higher position. */
static void free_slot(struct target *target, struct ring_consumer *consumer)
{
	struct thread_slot *slot = consumer->ring.slot;
	uint64_t head = (consumer->ring.head + CHANNEL_RING_SMALL_BYTES - 1) &
			~(uint64_t)(CHANNEL_RING_SMALL_BYTES - 1);

	target->slots[consumer->slot].consumed = head;
	atomic_store_explicit(&slot->tail, head, memory_order_relaxed);
	atomic_store_explicit(&slot->head, head << 1, memory_order_relaxed);
	atomic_store_explicit(&slot->producer_waits, 0, memory_order_relaxed);
	give_back_rings(target, consumer);
	torsh_view_free_slot(&target->view, consumer->slot);
}

static void note_fill(const struct ring_consumer *consumer, uint64_t n_bytes,
		      struct target_pass *pass)
{
	uint32_t percent = (uint32_t)(n_bytes * 100 / (consumer->ring.mask + 1));

	if (percent > pass->fill_percent)
		pass->fill_percent = percent;
}

/* The small ring is fully consumed: switch to the large one. */
static void follow_ring(struct target *target, struct ring_consumer *consumer)
{
	struct target_slot *known = &target->slots[consumer->slot];

	if (!known->large)
		known->large = torsh_view_map_ring(&target->view, consumer->slot, 1);
	if (known->large) {
		torsh_ring_consumer_enlarge(consumer, known->large, target->view.ring_bytes);
		torsh_view_clear_ring(&target->view, consumer->slot, 0, 0);
	} else {
		torsh_ring_consumer_break(consumer, "the writer had no address space for its ring");
	}
}

static uint64_t copy_ring(struct target *target, struct ring_consumer *consumer, uint64_t limit,
			  uint64_t now_ns)
{
	uint64_t n_bytes = torsh_ring_consumer_copy(consumer, limit, now_ns);

	if (!torsh_ring_consumer_is_at_end(consumer))
		return n_bytes;
	follow_ring(target, consumer);
	return n_bytes + torsh_ring_consumer_copy(consumer, limit, now_ns);
}

static uint32_t count_seen(struct target *target)
{
	uint32_t n = atomic_load_explicit(&target->view.header->n_threads, memory_order_acquire);

	n = n < target->view.n_slots ? n : target->view.n_slots;
	if (n > target->n_seen)
		target->n_seen = n;
	return target->n_seen;
}

/* Copy the contents of all rings; rings of closed slots receive nothing more. */
static void copy_rings(struct target *target, uint64_t limit, uint64_t now_ns,
		       struct target_pass *pass)
{
	uint32_t n = count_seen(target);

	target->n_closed = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct ring_consumer *consumer = target->slots[i].consumer;
		struct thread_slot *slot =
			consumer ? consumer->ring.slot : torsh_view_slot(&target->view, i);
		/*
		 * Pairs with the releases of the producer: makes the identity, and at the end the
		 * last events, visible.
		 */
		uint32_t state = slot ? atomic_load_explicit(&slot->state, memory_order_acquire)
				      : THREAD_SLOT_FREE;
		uint64_t n_bytes;

		if (!consumer && (state == THREAD_SLOT_ACTIVE || state == THREAD_SLOT_CLOSED))
			consumer = open_slot(target, i, slot);
		if (!consumer)
			continue;
		consumer->is_closed = state == THREAD_SLOT_CLOSED;
		target->n_closed += state == THREAD_SLOT_CLOSED;
		n_bytes = copy_ring(target, consumer, limit, now_ns);
		pass->n_copied += n_bytes;
		note_fill(consumer, n_bytes, pass);
	}
}

/* Highest first, so that the lowest slots, which have memory, are reused first. */
static void end_closed_slots(struct target *target, struct target_pass *pass)
{
	for (uint32_t i = target->n_closed ? target->n_seen : 0; i-- > 0;) {
		struct ring_consumer *consumer = target->slots[i].consumer;

		if (!consumer || !consumer->is_closed || !torsh_ring_consumer_is_dry(consumer))
			continue;
		end_consumer(target, consumer);
		free_slot(target, consumer);
		forget_consumer(target, consumer);
		pass->n_ended++;
	}
}

/* Bytes that were sent on rings that could not be mapped. */
static void count_unread_rings(struct target *target)
{
	uint32_t n = count_seen(target);

	for (uint32_t i = 0; i < n; i++) {
		const struct thread_slot *slot = torsh_view_slot(&target->view, i);
		uint32_t state = slot ? atomic_load_explicit(&slot->state, memory_order_acquire)
				      : THREAD_SLOT_FREE;

		if (!target->slots[i].ring &&
		    (state == THREAD_SLOT_ACTIVE || state == THREAD_SLOT_CLOSED))
			target->state.losses[WRITER_LOSS_ring_unread] +=
				atomic_load_explicit(&slot->produced, memory_order_relaxed) +
				atomic_load_explicit(&slot->dropped, memory_order_relaxed);
	}
}

/*
 * After the end, every ring was copied and folded completely. What is left is an incomplete event.
 */
static void end_all(struct target *target)
{
	for (uint32_t i = 0; i < target->n_consumers; i++) {
		torsh_ring_consumer_end(target->consumers[i]);
		end_consumer(target, target->consumers[i]);
	}
	while (target->n_consumers)
		forget_consumer(target, target->consumers[0]);
	count_unread_rings(target);
	target->is_drained = true;
}

/* The bound of threads that do not exist yet, as of now. */
static uint64_t order_limit(const struct target *target, bool is_over)
{
	const struct clock_conversion *clock = &target->state.clock;
	uint64_t now = torsh_clock_now(clock),
		 slack = torsh_clock_stamps_of_ns(clock, ORDER_SLACK_NS);

	if (is_over || target->is_clock_foreign)
		return ORDER_NO_BOUND;
	return now > slack ? now - slack : 0;
}

struct target_pass torsh_target_drain(struct target *target, uint64_t now_ns, uint64_t budget)
{
	struct target_pass pass = {0};
	int fate = atomic_load_explicit(&target->fate, memory_order_acquire),
	    over = fate != TARGET_LIVES;
	/* Read before the rings: see order.h. */
	uint64_t limit = order_limit(target, over);

	if (!target->is_frozen && (fate != TARGET_LEFT || target->n_leaving++ < LEAVING_PASSES))
		copy_rings(target, limit, now_ns, &pass);
	if (over) {
		for (uint32_t i = 0; i < target->n_consumers; i++)
			target->consumers[i]->bound = ORDER_NO_BOUND;
	}
	target->limit = limit;
	limit = limit < target->fold_until ? limit : target->fold_until;
	limit = limit < target->account_until ? limit : target->account_until;
	pass.n_folded = torsh_merge_fold(&target->state, target->consumers, target->n_consumers,
					 limit, budget);
	if (!over)
		end_closed_slots(target, &pass);
	else if (!pass.n_copied && !pass.n_folded && target->fold_until == ORDER_NO_BOUND &&
		 target->account_until == ORDER_NO_BOUND)
		end_all(target);
	return pass;
}

/* ORDER_NO_BOUND: no more events, or its time has no lower bound. */
static uint64_t bound_of_all(const struct target *target)
{
	uint64_t bound = target->limit;

	for (uint32_t i = 0; i < target->n_consumers; i++) {
		const struct ring_consumer *consumer = target->consumers[i];
		uint64_t own = consumer->first < consumer->n_events
				       ? consumer->events[consumer->first].stamp
				       : torsh_ring_consumer_bound(consumer);

		bound = own < bound ? own : bound;
	}
	return bound;
}

uint64_t torsh_target_bound(const struct target *target)
{
	uint64_t bound = bound_of_all(target);

	/* If it has ended but is not drained, only this much is certain. */
	return bound == ORDER_NO_BOUND ? target->state.last_stamp : bound;
}

void torsh_target_hold(struct target *target, const struct clock_instant *moment)
{
	if (!target->is_clock_foreign)
		target->fold_until = torsh_clock_instant_to_stamp(&target->state.clock, moment);
}

void torsh_target_release(struct target *target)
{
	target->fold_until = ORDER_NO_BOUND;
}

bool torsh_target_is_at_hold(const struct target *target)
{
	if (target->fold_until == ORDER_NO_BOUND)
		return true;
	return bound_of_all(target) > target->fold_until;
}

void torsh_target_hold_account(struct target *target, const struct clock_instant *moment)
{
	if (!target->is_clock_foreign)
		target->account_until = torsh_clock_instant_to_stamp(&target->state.clock, moment);
}

void torsh_target_release_account(struct target *target)
{
	target->account_until = ORDER_NO_BOUND;
}

bool torsh_target_is_at_account(const struct target *target)
{
	return target->account_until == ORDER_NO_BOUND ||
	       bound_of_all(target) > target->account_until;
}

static bool has_call(const struct target *target)
{
	return atomic_load_explicit(&target->view.header->calls, memory_order_acquire) !=
	       target->n_calls_taken;
}

bool torsh_target_has_work(struct target *target)
{
	uint32_t n = count_seen(target);

	if (has_call(target))
		return true;
	for (uint32_t i = 0; i < n; i++) {
		const struct ring_consumer *consumer = target->slots[i].consumer;
		const struct thread_slot *slot =
			consumer ? consumer->ring.slot : torsh_view_slot(&target->view, i);

		if (!slot)
			continue;
		if (consumer ? !torsh_ring_consumer_is_dry(consumer)
			     : atomic_load_explicit(&slot->head, memory_order_acquire) >> 1 !=
				       target->slots[i].consumed)
			return true;
	}
	return false;
}

bool torsh_target_is_filling(struct target *target)
{
	uint32_t n = count_seen(target);

	if (has_call(target))
		return true;
	for (uint32_t i = 0; i < n; i++) {
		const struct ring_consumer *consumer = target->slots[i].consumer;
		const struct thread_slot *slot =
			consumer ? consumer->ring.slot : torsh_view_slot(&target->view, i);
		uint64_t consumed = consumer ? consumer->ring.head : target->slots[i].consumed,
			 size = consumer ? consumer->ring.mask + 1 : CHANNEL_RING_SMALL_BYTES;

		if (slot &&
		    (atomic_load_explicit(&slot->head, memory_order_acquire) >> 1) - consumed >=
			    size / 4)
			return true;
	}
	return false;
}
