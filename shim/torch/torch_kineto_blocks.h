/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The CPU blocks that PyTorch's own profiler would track without the agent. libc10 tracks a block
 * that is allocated while a profiler records memory, and reports only the frees of those. Because
 * the agent makes it report always, the agent does the tracking. Used only while one of the
 * program's profilers is on.
 */
#ifndef TORSH_SHIM_TORCH_TORCH_KINETO_BLOCKS_H
#define TORSH_SHIM_TORCH_TORCH_KINETO_BLOCKS_H

#include <stdint.h>

/* A block was allocated under the profiler. Returns 1, and the sum of all that are allocated. */
int torsh_torch_kineto_alloc(uintptr_t block, uint64_t n_bytes, uint64_t *allocated);

/*
 * A block is freed under the profiler. Returns 1, and the sum without it; 0 if it was allocated
 * before.
 */
int torsh_torch_kineto_free(uintptr_t block, uint64_t *allocated);

#endif
