/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The blocks of the CPU's that PyTorch's own profiler would know of if the agent weren't there.
 * libc10 notes a block when it is allocated while a profiler records memory, and reports the free
 * only of those: since it believes that one always does, that is done here. Touched only while a
 * profiler of the program's is on.
 */
#ifndef TORSH_SHIM_TORCH_TORCH_KINETO_BLOCKS_H
#define TORSH_SHIM_TORCH_TORCH_KINETO_BLOCKS_H

#include <stdint.h>

/* A block was allocated under the profiler: 1, and the sum of all that are. */
int torsh_torch_kineto_alloc(uintptr_t block, uint64_t n_bytes, uint64_t *allocated);

/* It is freed under the profiler: 1, and the sum without it; 0 when it was allocated before. */
int torsh_torch_kineto_free(uintptr_t block, uint64_t *allocated);

#endif
