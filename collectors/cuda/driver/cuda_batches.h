/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Driver calls with many copies, prefetches or decompressions: their total size and direction. */
#ifndef TORSH_COLLECTORS_CUDA_DRIVER_CUDA_BATCHES_H
#define TORSH_COLLECTORS_CUDA_DRIVER_CUDA_BATCHES_H

#include <stdint.h>

#include "shim/cuda/driver.h"

/* The kind of memory at an address, DRIVER_DEVICE or DRIVER_HOST. Calls the driver. */
enum driver_memory torsh_cuda_memory_at(uint64_t address);

/*
 * Replace work->batch by the sum of its bytes and its common direction: COPY_UNKNOWN for several; a
 * direction that is already set stays. Calls the driver for each address.
 */
void torsh_cuda_describe_batch(struct driver_work *work);

#endif
