/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls that ask for many copies, prefetches or decompressions at once: what they come to. */
#ifndef TORSH_COLLECTORS_CUDA_CUDA_BATCHES_H
#define TORSH_COLLECTORS_CUDA_CUDA_BATCHES_H

#include <stdint.h>

#include "shim/cuda/driver.h"

/* Whose memory lies there, as the driver says: DRIVER_DEVICE or DRIVER_HOST. Calls the driver. */
enum driver_memory torsh_cuda_memory_at(uint64_t address);

/*
 * Find out what work->batch comes to: the sum of its bytes, and the direction that all of it has
 * (COPY_UNKNOWN where there are several; one that is known already stays). The batch is forgotten
 * then. Calls the driver, for each address.
 */
void torsh_cuda_describe_batch(struct driver_work *work);

#endif
