/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* CUPTI callbacks for a second subscriber: CUPTI itself has one subscription per process. */
#ifndef TORSH_COLLECTORS_CUDA_CUPTI_CUDA_SHADOW_H
#define TORSH_COLLECTORS_CUDA_CUPTI_CUDA_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

/* CUPTI gave the agent this subscription; before any callback is enabled. */
void torsh_cuda_subscribed(void *subscriber);

/* Enable a callback for the agent. Returns 0, or CUPTI's result. */
int torsh_cuda_watch_callback(int domain, uint32_t id);

/* Whether the agent enabled this callback. */
bool torsh_cuda_is_watched(int domain, uint32_t id);

/* Forward a callback to the second subscriber, if it enabled this one. */
void torsh_cuda_call_shadow(int domain, uint32_t id, const void *data);

#endif
