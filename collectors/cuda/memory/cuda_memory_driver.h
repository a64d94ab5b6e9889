/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls about memory, as the driver's interposed entry points see them. */
#ifndef TORSH_COLLECTORS_CUDA_MEMORY_CUDA_MEMORY_DRIVER_H
#define TORSH_COLLECTORS_CUDA_MEMORY_CUDA_MEMORY_DRIVER_H

/* Look up the calls; before the entry points are watched. */
void torsh_cuda_memory_watch_driver(void);

#endif
