/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Code that the program, or a library, loads on a device: how much less of the device's memory is
 * free after the call than before it. Code that the driver loads later, when a kernel is first
 * used, is not in that.
 */
#ifndef TORSH_COLLECTORS_CUDA_MEMORY_CUDA_MODULES_H
#define TORSH_COLLECTORS_CUDA_MEMORY_CUDA_MODULES_H

#include <stdint.h>

#include "collectors/cuda/memory/cuda_memory_events.h"

/* A call about memory begins or returns: what is measured on other threads is no module's alone. */
void torsh_cuda_modules_see_change(void);

/* A call that loads code begins, on that device. */
void torsh_cuda_modules_begins(uint32_t device);

/* It returned: send the module, with the stack above frame, if result is 0. api: its label. */
void torsh_cuda_modules_ends(uint32_t api, const struct cuda_memory_call *call, int result,
			     const void *frame);

/* The module with this handle was unloaded. */
void torsh_cuda_modules_unloaded(uint32_t api, const struct cuda_memory_call *call,
				 uint64_t handle);

#endif
