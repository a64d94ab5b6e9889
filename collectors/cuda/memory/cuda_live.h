/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Device memory that the program holds, by the recorded calls: decides when to query the driver at
 * a new maximum. Reports do not use it; graph memory is not counted.
 */
#ifndef TORSH_COLLECTORS_CUDA_MEMORY_CUDA_LIVE_H
#define TORSH_COLLECTORS_CUDA_MEMORY_CUDA_LIVE_H

#include <stdbool.h>

#include "agent/wire/event.h"

#define LIVE_DEVICES_MAX 64u

/*
 * Count an allocation. Returns not 0 if the device holds so much more than at the last maximum that
 * the driver is to be queried.
 */
bool torsh_cuda_live_got(const struct event_device_alloc *alloc);

/* A free begins; and the free failed, on the same thread: the block is counted again. */
void torsh_cuda_live_frees(uint32_t kind, uint64_t address);

/* The free failed, on the same thread: the block is counted again. */
void torsh_cuda_live_kept(uint32_t kind, uint64_t address);

/* Mappings of this address range were removed (cuMemUnmap). */
void torsh_cuda_live_unmapped(uint64_t address, uint64_t bytes);

/* The context was destroyed, with all allocations made in it. */
void torsh_cuda_live_context_ended(uint32_t context);

#endif
