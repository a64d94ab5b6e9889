/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* API calls of the program, as CUPTI calls back around them. */
#ifndef TORSH_COLLECTORS_CUDA_CUPTI_CUDA_CALLS_H
#define TORSH_COLLECTORS_CUDA_CUPTI_CUDA_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* The callback given to CUPTI with the subscription (CUpti_CallbackFunc). */
void torsh_cuda_called_back(void *unused, int domain, uint32_t id, const void *data);

/* Enable CUPTI's callbacks for all recorded calls; before the program can make one. */
void torsh_cuda_watch_calls(void);

/* Whether the calling thread is inside a CUDA API call. */
bool torsh_cuda_is_in_call(void);

#endif
