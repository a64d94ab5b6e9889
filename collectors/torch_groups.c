/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Process groups of torch.distributed: their addresses and numbers, as Python tells of them before their first collective.
 * A group that was destroyed stays in the list until one at its address comes.
 */
#include <stdatomic.h>

#include "collectors/torch.h"

#define MOST_GROUPS 256u

/* Written with Python's lock held; group i has number i + 1. */
static _Atomic uintptr_t groups[MOST_GROUPS];
static _Atomic uint32_t n_groups;

uint32_t torsh_torch_group_add(uintptr_t group)
{
	uint32_t n = atomic_load_explicit(&n_groups, memory_order_relaxed);

	if (n == MOST_GROUPS)
		return 0;
	atomic_store_explicit(&groups[n], group, memory_order_relaxed);
	/* Pairs with the acquire in torsh_torch_group_number. */
	atomic_store_explicit(&n_groups, n + 1, memory_order_release);
	return n + 1;
}

uint32_t torsh_torch_group_number(uintptr_t group)
{
	uint32_t n = atomic_load_explicit(&n_groups, memory_order_acquire);

	while (n && atomic_load_explicit(&groups[n - 1], memory_order_relaxed) != group)
		n--;
	return n;
}
