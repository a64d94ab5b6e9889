/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/producer/producers.h"

#include <stdbool.h>

#include "agent/process/config.h"
#include "agent/process/memory_lock.h"
#include "agent/process/process.h"

#define PRODUCER_BYTES ((sizeof(struct producer) + 4095) & ~(size_t)4095)
#define STEP_NS UINT64_C(100000)

struct producer *torsh_producers_take_block(void)
{
	struct producer *producer;

	for (uint32_t i = 0; i < N_KEPT_PRODUCERS; i++) {
		struct producer *_Atomic *kept = &torsh_process->kept[i];

		producer = atomic_load_explicit(kept, memory_order_relaxed);
		/* Acquire pairs with the release that kept the block. */
		if (producer && atomic_compare_exchange_strong_explicit(kept, &producer, NULL,
									memory_order_acquire,
									memory_order_relaxed))
			return producer;
	}
	producer = torsh_sys_own_pages(PRODUCER_BYTES + torsh_stack_bytes());
	if (!producer)
		return NULL;
	producer->stack = torsh_stack_create((uint8_t *)producer + PRODUCER_BYTES);
	if (producer->stack)
		return producer;
	torsh_sys_munmap(producer, PRODUCER_BYTES + torsh_stack_bytes());
	return NULL;
}

void torsh_producers_drop_block(struct producer *producer)
{
	for (uint32_t i = 0; i < N_KEPT_PRODUCERS && !torsh_memory_lock_is_limited(); i++) {
		struct producer *_Atomic *kept = &torsh_process->kept[i];
		struct producer *none = NULL;

		if (!atomic_load_explicit(kept, memory_order_relaxed) &&
		    atomic_compare_exchange_strong_explicit(
			    kept, &none, producer, memory_order_release, memory_order_relaxed))
			return;
	}
	for (uint32_t i = 0; i < PRODUCER_PAGES && producer->pages[i].at; i++)
		torsh_sys_munmap(producer->pages[i].at, producer->pages[i].n_bytes);
	torsh_stack_destroy(producer->stack);
	torsh_sys_munmap(producer, PRODUCER_BYTES + torsh_stack_bytes());
}

/*
 * Take the list; no handler of a signal runs until it is left, because it might not return. A
 * filter of system calls may forbid that.
 */
static void hold_list(uint64_t *mask)
{
	const uint64_t all = UINT64_MAX;

	if (!torsh_agent_is_sandboxed())
		TORSH_SYS(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, mask, sizeof(all), 0, 0);
	/* Acquire pairs with the release in leave_list. */
	while (atomic_exchange_explicit(&torsh_process->producers_held, 1, memory_order_acquire))
		torsh_sys_futex_wait(&torsh_process->producers_held, 1, STEP_NS);
}

static void leave_list(const uint64_t *mask)
{
	atomic_store_explicit(&torsh_process->producers_held, 0, memory_order_release);
	if (!torsh_agent_is_sandboxed())
		TORSH_SYS(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, mask, 0, sizeof(*mask), 0, 0);
}

void torsh_producers_add(struct producer *producer)
{
	uint64_t mask = 0;

	if (!torsh_config.is_dormant)
		return;
	hold_list(&mask);
	producer->next = torsh_process->producers;
	torsh_process->producers = producer;
	leave_list(&mask);
}

void torsh_producers_remove(struct producer *producer)
{
	uint64_t mask = 0;
	struct producer **at = &torsh_process->producers;

	if (!torsh_config.is_dormant)
		return;
	hold_list(&mask);
	while (*at && *at != producer)
		at = &(*at)->next;
	if (*at)
		*at = producer->next;
	leave_list(&mask);
}

void torsh_producers_expire(void)
{
	uint64_t mask = 0;

	hold_list(&mask);
	atomic_fetch_add_explicit(&torsh_process->generation, 1, memory_order_release);
	/* Pairs with the fence in has_expired of producer.c. */
	atomic_thread_fence(memory_order_seq_cst);
	for (struct producer *producer = torsh_process->producers; producer;
	     producer = producer->next)
		*(volatile uint64_t *)&producer->ring.room_until = 0;
	leave_list(&mask);
}
