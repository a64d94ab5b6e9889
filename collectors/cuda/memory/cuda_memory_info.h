/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the driver says itself of the memory of devices: whenever the program asks; when it has more
 * of a device than it ever had; when it was refused some; and at the end.
 *
 * The agent asks in the program's own thread, right behind a call of the program's that was about
 * memory: only where that could be made, which is not so in host functions, nor in signal handlers
 * within another call. Captures of streams are not disturbed, the current context is as before, and
 * the runtime's last error is the runtime's alone. Nothing that the driver does for that is
 * recorded as the program's.
 */
#ifndef TORSH_COLLECTORS_CUDA_MEMORY_CUDA_MEMORY_INFO_H
#define TORSH_COLLECTORS_CUDA_MEMORY_CUDA_MEMORY_INFO_H

#include "agent/wire/event.h"
#include "shim/cuda/cuda_memory.h"

/* CUPTI is attached: find what is called. Without CUPTI that is done already. */
void torsh_cuda_memory_info_begin(void);

/*
 * The program got memory of the device: it is asked about at the end, with its pools where it was
 * of one.
 */
void torsh_cuda_memory_info_see(uint32_t device, int is_of_pool);

/* cuMemGetInfo returned. */
void torsh_cuda_memory_info_returned(const struct cuda_mem_get_info *info, uint32_t device);

/*
 * The calling thread is within a call of the driver that the agent makes to ask it. Looked at in
 * every callback.
 */
extern _Thread_local int torsh_cuda_memory_info_is_querying;

/*
 * Ask the driver how much room the device has, with its pools where that is wanted or the program
 * had memory of one. Returns 0, ROOM_NOT_ASKED, or the driver's error.
 */
int torsh_cuda_memory_info_query(uint32_t device, int is_of_pool, struct event_device_room *info);

/* Ask and tell: the program has more of the device than it ever had. */
void torsh_cuda_memory_info_is_high(uint32_t device);

/*
 * Ask and tell how much room all the devices have that were seen: at the program's exit, in no
 * callback.
 */
void torsh_cuda_memory_info_exiting(void);

#endif
