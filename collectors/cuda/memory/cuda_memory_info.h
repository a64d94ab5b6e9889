/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Free and total bytes of devices, from the driver (cuMemGetInfo) and its pools: whenever the
 * program queries them, at a new maximum, after a refused allocation, and at exit.
 *
 * The agent queries on the program's thread, right after a call about memory, and only if a driver
 * call is allowed: not in host functions, nor in signal handlers inside another call. Stream
 * captures, the current context and the runtime's last error stay as they are. The driver's work
 * for the query is not recorded.
 */
#ifndef TORSH_COLLECTORS_CUDA_MEMORY_CUDA_MEMORY_INFO_H
#define TORSH_COLLECTORS_CUDA_MEMORY_CUDA_MEMORY_INFO_H

#include <stdbool.h>

#include "agent/wire/event.h"
#include "shim/cuda/cuda_memory.h"

/* CUPTI is attached: look up the driver functions. Without CUPTI they are looked up already. */
void torsh_cuda_memory_info_begin(void);

/* The program allocated on the device: query it at exit, including its pools if is_of_pool. */
void torsh_cuda_memory_info_see(uint32_t device, bool is_of_pool);

/* The program's own cuMemGetInfo returned: send its result. */
void torsh_cuda_memory_info_returned(const struct cuda_mem_get_info *info, uint32_t device);

/*
 * Set while the calling thread is in a driver call that the agent makes. Checked by every callback.
 */
extern _Thread_local bool torsh_cuda_memory_info_is_querying;

/*
 * Query the device, including its pools if is_of_pool or the program has allocated from one.
 * Returns 0, ROOM_NOT_ASKED, or the driver's error.
 */
int torsh_cuda_memory_info_query(uint32_t device, bool is_of_pool, struct event_device_room *info);

/* The same where a driver call of the program's begins, or has returned. */
int torsh_cuda_memory_info_query_at_call(uint32_t device, struct event_device_room *info);

/* Query the device and send the result: the program holds more of it than before. */
void torsh_cuda_memory_info_is_high(uint32_t device);

/* Query all devices that were used and send the results: at exit, in no callback. */
void torsh_cuda_memory_info_exiting(void);

#endif
