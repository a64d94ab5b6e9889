/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/stamp.h"

/*
 * A change of owner costs two flows a cache miss or two each, a fence one flow a tenth of that: below some twenty events
 * between two changes fences are cheaper.
 */
#define NEAR_TICKS 4096u /* 1 to 2 µs */
#define SHARED_TICKS (UINT64_C(1) << 18) /* about 100 µs, then owning is tried again */
#define IS_SHARED 1u

_Atomic uint64_t torsh_stamp_owner;

static _Atomic uint64_t changed_at;

uint64_t torsh_stamp_take(const struct flow *flow)
{
	uint64_t owner = atomic_load_explicit(&torsh_stamp_owner, memory_order_relaxed), next, now;

	if (!TORSH_CPU_LOADS_IN_ORDER)
		return torsh_cpu_ticks_ordered();
	do {
		uint64_t age;

		/* After the load: what an owner before us has read was read before it owned. */
		now = torsh_cpu_ticks_ordered();
		if (owner & IS_SHARED && now < owner >> 1)
			return now;
		age = now - atomic_load_explicit(&changed_at, memory_order_relaxed);
		next = !(owner & IS_SHARED) && age < NEAR_TICKS ? (now + SHARED_TICKS) << 1 | IS_SHARED
								: (uintptr_t)flow;
	} while (!atomic_compare_exchange_weak(&torsh_stamp_owner, &owner, next));
	atomic_store_explicit(&changed_at, now, memory_order_relaxed);
	return now;
}

void torsh_stamp_disown(const struct flow *flow)
{
	uint64_t owner = (uintptr_t)flow;

	atomic_compare_exchange_strong(&torsh_stamp_owner, &owner, 0);
}
