/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Counters of whole devices at intervals, by CUPTI's PM sampling. */
#ifndef TORSH_COLLECTORS_CUDA_COUNTERS_CUDA_COUNTER_SAMPLES_H
#define TORSH_COLLECTORS_CUDA_COUNTERS_CUDA_COUNTER_SAMPLES_H

#include <stdint.h>

/* Work is launched on the context (a CUcontext): sample its device from now on. */
void torsh_counter_samples_see(void *context, uint32_t context_id);

/* The process ends: wait, for a limited time, until the last samples are sent. */
void torsh_counter_samples_end(void);

#endif
