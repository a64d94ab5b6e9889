/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/input/target_parts.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

struct target_counts torsh_target_count_consumer(const struct ring_consumer *consumer, bool is_over)
{
	const struct thread_slot *slot = consumer->ring.slot;
	uint64_t produced = atomic_load_explicit(&slot->produced, memory_order_acquire);
	uint64_t dropped = atomic_load_explicit(&slot->dropped, memory_order_relaxed);
	bool is_busy = (int)(atomic_load_explicit(&slot->head, memory_order_relaxed) & 1);
	struct target_counts counts = {
		.delivered = consumer->n_decoded,
		.dropped = dropped,
		.uncommitted = is_over && is_busy,
		.ring_bytes = consumer->n_bytes,
		.waited_ns = atomic_load_explicit(&slot->waited_ns, memory_order_relaxed),
	};

	/*
	 * The event in flight at the end may have been counted already, although it was never sent.
	 */
	if (counts.uncommitted && produced == consumer->n_decoded + 1)
		produced--;
	if (!is_over || produced < consumer->n_decoded)
		produced = consumer->n_decoded;
	counts.damaged = produced - consumer->n_decoded;
	counts.dropped += counts.damaged;
	counts.produced = produced + dropped;
	return counts;
}

void torsh_target_add_counts(struct target_counts *sum, const struct target_counts *counts)
{
	sum->produced += counts->produced;
	sum->delivered += counts->delivered;
	sum->dropped += counts->dropped;
	sum->uncommitted += counts->uncommitted;
	sum->damaged += counts->damaged;
	sum->ring_bytes += counts->ring_bytes;
	sum->waited_ns += counts->waited_ns;
}

static void add_heap_counts(struct target_heap_counts *sum, const struct heap_counts *counts)
{
	sum->frees += atomic_load_explicit(&counts->frees, memory_order_relaxed);
	for (uint32_t i = 0; i < CHANNEL_SIZE_CLASSES; i++) {
		uint64_t n = atomic_load_explicit(&counts->sizes[i].blocks, memory_order_relaxed);
		uint64_t bytes =
			atomic_load_explicit(&counts->sizes[i].bytes, memory_order_relaxed);

		sum->allocs += n;
		sum->alloc_bytes += bytes;
		sum->size_blocks[i] += n;
		sum->size_bytes[i] += bytes;
	}
}

void torsh_target_count_heap(const struct target *target, struct target_heap_counts *counts)
{
	*counts = (struct target_heap_counts){0};
	for (uint32_t i = 0; i < target->n_seen; i++) {
		const struct heap_counts *of_slot = torsh_view_heap_counts(&target->view, i);

		if (of_slot)
			add_heap_counts(counts, of_slot);
	}
}

void torsh_target_count_thread(const struct target *target, struct ring_consumer *consumer)
{
	const struct heap_counts *of_slot = torsh_view_heap_counts(&target->view, consumer->slot);
	const struct target_slot *known = &target->slots[consumer->slot];
	struct target_heap_counts counts = {0};

	if (!of_slot)
		return;
	add_heap_counts(&counts, of_slot);
	consumer->heap.allocs = counts.allocs - known->former_allocs;
	consumer->heap.alloc_bytes = counts.alloc_bytes - known->former_alloc_bytes;
	consumer->heap.frees = counts.frees - known->former_frees;
}

/* The agent's counter of this kind. */
static uint64_t count_lost_by_agent(const struct target *target, enum counter_kind kind)
{
	static const enum counter_kind kinds[] = {
#define COUNTER(name, kind, text) kind,
#include "agent/wire/counters.def"
#undef COUNTER
	};
	uint64_t sum = 0;

	for (int i = 0; i < N_COUNTERS; i++) {
		if (kinds[i] == kind)
			sum += atomic_load_explicit(&target->view.header->counters[i],
						    memory_order_relaxed);
	}
	return sum;
}

/* Without events that no ring had. */
static struct target_counts count_rings(const struct target *target)
{
	struct target_counts sum = target->ended;

	for (uint32_t i = 0; i < target->n_consumers; i++) {
		struct target_counts counts = torsh_target_count_consumer(target->consumers[i], 0);

		torsh_target_add_counts(&sum, &counts);
	}
	return sum;
}

struct target_counts torsh_target_counts(const struct target *target)
{
	struct target_counts counts = count_rings(target);
	/* Events that no ring ever had, or that were never seen on their ring. */
	uint64_t lost = count_lost_by_agent(target, LOST_EVENTS) +
			target->state.losses[WRITER_LOSS_ring_unread];

	counts.produced += lost;
	counts.dropped += lost;
	return counts;
}

void torsh_target_losses(const struct target *target, uint64_t losses[N_WRITER_LOSSES])
{
	struct target_counts counts = count_rings(target);

	memcpy(losses, target->state.losses, sizeof(target->state.losses));
	losses[WRITER_LOSS_ring_full] = counts.dropped - counts.damaged;
	losses[WRITER_LOSS_ring_damaged] = counts.damaged;
	losses[WRITER_LOSS_stacks_unkept] = target->state.heap.n_left_out;
	losses[WRITER_LOSS_scopes_unkept] = target->state.scopes.n_unkept;
}

bool torsh_target_is_lossy(const struct target *target)
{
	uint64_t losses[N_WRITER_LOSSES], sum = count_lost_by_agent(target, LOST_EVENTS);

	torsh_target_losses(target, losses);
	for (int i = 0; i < N_WRITER_LOSSES; i++)
		sum += losses[i];
	return sum || count_lost_by_agent(target, LOST_OTHER);
}
