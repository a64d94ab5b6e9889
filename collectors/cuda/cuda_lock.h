/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A lock held for a few instructions, which no signal handler takes. */
#ifndef TORSH_COLLECTORS_CUDA_CUDA_LOCK_H
#define TORSH_COLLECTORS_CUDA_CUDA_LOCK_H

#include <stdatomic.h>
#include <stdint.h>

#include "shim/sys.h"

struct cuda_lock {
	_Atomic uint32_t is_taken;
};

/* Take the lock; yields the CPU while another thread holds it. Not recursive. */
static inline void torsh_cuda_lock(struct cuda_lock *lock)
{
	/* Pairs with the release in torsh_cuda_unlock. */
	while (atomic_exchange_explicit(&lock->is_taken, 1, memory_order_acquire))
		TORSH_SYS(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

/* Release the lock, on the thread that took it. */
static inline void torsh_cuda_unlock(struct cuda_lock *lock)
{
	atomic_store_explicit(&lock->is_taken, 0, memory_order_release);
}

#endif
