/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Counters of single kernels, by CUPTI's range profiler. */
#ifndef TORSH_COLLECTORS_CUDA_COUNTERS_CUDA_COUNTER_RANGES_H
#define TORSH_COLLECTORS_CUDA_COUNTERS_CUDA_COUNTER_RANGES_H

#include <stdbool.h>

#include "shim/cuda/cupti.h"

/*
 * The launch of a kernel with this shape begins. Returns 1 if it is measured: then
 * torsh_counter_range_end follows on the same thread.
 */
bool torsh_counter_range_begin(const struct cupti_call *call,
			       const struct cupti_launch_config *shape);

/* The measured launch has returned, on the same thread: reads and sends its values. */
void torsh_counter_range_end(const struct cupti_call *call);

/* The context (a CUcontext) is about to be destroyed: drop its profiler. */
void torsh_counter_ranges_forget(const void *context);

/* The process ends: measure no more kernels. */
void torsh_counter_ranges_end(void);

#endif
