/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Flushes of CUPTI's activity buffers, on a thread of the agent, with a time limit. */
#ifndef TORSH_COLLECTORS_CUDA_CUPTI_CUDA_FLUSH_H
#define TORSH_COLLECTORS_CUDA_CUPTI_CUDA_FLUSH_H

#include <stdbool.h>

/*
 * Start the thread that flushes. Returns 0 or -errno: then flushes run on the calling thread,
 * without a time limit.
 */
int torsh_cuda_flusher_start(void);

/*
 * Fetch the records that CUPTI still holds; blocks for up to two seconds. is_last: also those of
 * activities that still run (CUPTI's forced flush).
 */
void torsh_cuda_flush(bool is_last);

#endif
