/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The parameters of an allocating call as an event. action: enum cuda_memory_action. */
#ifndef TORSH_COLLECTORS_CUDA_MEMORY_CUDA_REQUEST_H
#define TORSH_COLLECTORS_CUDA_MEMORY_CUDA_REQUEST_H

#include "agent/wire/event.h"
#include "shim/cuda/cuda_memory.h"

/*
 * Read what is requested: bytes, pool, device. The device is unchanged unless the parameters have
 * one.
 */
void torsh_cuda_request_before(struct event_device_alloc *alloc, const void *parameters,
			       uint8_t action);

/* Like torsh_cuda_request_before, and the address or handle; only after the call returned 0. */
void torsh_cuda_request_after(struct event_device_alloc *alloc, const void *parameters,
			      uint8_t action);

#endif
