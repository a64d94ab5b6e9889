/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How much of each device's memory the program has, by the calls that were seen: to know when it
 * has more than ever. What reports say is the recording's, not this; memory of graphs is not in it.
 */
#ifndef TORSH_COLLECTORS_CUDA_MEMORY_CUDA_LIVE_H
#define TORSH_COLLECTORS_CUDA_MEMORY_CUDA_LIVE_H

#include "agent/wire/event.h"

#define LIVE_DEVICES_MAX 64u

/*
 * The program got it. Returns not 0 where its device has so much more than the last time that this
 * was said that the driver is to be asked.
 */
int torsh_cuda_live_got(const struct event_device_alloc *alloc);

/* It is about to give that back; and it could not, as it turns out on the same thread. */
void torsh_cuda_live_frees(uint32_t kind, uint64_t address);
void torsh_cuda_live_kept(uint32_t kind, uint64_t address);

/* Mappings were undone. */
void torsh_cuda_live_unmapped(uint64_t address, uint64_t bytes);

/* The context ended, with what was got in it. */
void torsh_cuda_live_context_ended(uint32_t context);

#endif
