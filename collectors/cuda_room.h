/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the driver says itself of the memory of devices: whenever the program asks, and at the end. */
#ifndef TORSH_COLLECTORS_CUDA_ROOM_H
#define TORSH_COLLECTORS_CUDA_ROOM_H

#include "collectors/cuda.h"
#include "shim/cuda_memory.h"

/* The program got memory of the device: it is asked about at the end, with its pools where it was of one. */
void torsh_cuda_room_see(uint32_t device, int is_of_pool);

/* cuMemGetInfo returned. */
void torsh_cuda_room_told(const struct cuda_room *room, uint32_t device);

/* Ask the driver how much room the devices have. Calls CUDA: at the program's exit, in no callback. */
void torsh_cuda_room_exiting(void);

#endif
