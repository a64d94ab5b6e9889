/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Pools of memory, by what and where their memory is: of another device than the stream's, of the
 * host, managed.
 */
#ifndef TORSH_COLLECTORS_CUDA_MEMORY_CUDA_POOLS_H
#define TORSH_COLLECTORS_CUDA_MEMORY_CUDA_POOLS_H

#include "agent/wire/event.h"
#include "shim/cuda/cuda_memory.h"

/* The pool has such memory. */
void torsh_cuda_pools_add(uint64_t pool, const struct cuda_properties *properties);

/*
 * Put what an allocation is and where it lies by what its pool has; it stays as it is where that
 * was not learned.
 */
void torsh_cuda_pools_locate(struct event_device_alloc *alloc);

#endif
