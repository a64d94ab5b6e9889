/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Memory pools and the location of their memory: another device than the stream's, the host, or
 * managed memory.
 */
#ifndef TORSH_COLLECTORS_CUDA_MEMORY_CUDA_POOLS_H
#define TORSH_COLLECTORS_CUDA_MEMORY_CUDA_POOLS_H

#include "agent/wire/event.h"
#include "shim/cuda/cuda_memory.h"

/* Add a pool, or replace its properties. */
void torsh_cuda_pools_add(uint64_t pool, const struct cuda_properties *properties);

/*
 * Set the kind and device of an allocation from the properties of its pool; unchanged for an
 * unknown pool.
 */
void torsh_cuda_pools_locate(struct event_device_alloc *alloc);

#endif
