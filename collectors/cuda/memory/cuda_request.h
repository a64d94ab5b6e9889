/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a call about memory asks for, and what it got, by its parameters. action: enum
 * cuda_memory_action, of one that gets some.
 */
#ifndef TORSH_COLLECTORS_CUDA_MEMORY_CUDA_REQUEST_H
#define TORSH_COLLECTORS_CUDA_MEMORY_CUDA_REQUEST_H

#include "agent/wire/event.h"
#include "shim/cuda/cuda_memory.h"

/*
 * How much is asked for, and where: whatever becomes of the call. The device stays where nothing
 * says another one.
 */
void torsh_cuda_request_before(struct event_device_alloc *alloc, const void *parameters,
			       uint8_t action);

/* The same, and what it is that was got: where the call has returned 0. */
void torsh_cuda_request_after(struct event_device_alloc *alloc, const void *parameters,
			      uint8_t action);

#endif
