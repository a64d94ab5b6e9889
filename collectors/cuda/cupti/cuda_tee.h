/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Activity records for a second CUPTI client in this process, such as PyTorch's Kineto. */
#ifndef TORSH_COLLECTORS_CUDA_CUPTI_CUDA_TEE_H
#define TORSH_COLLECTORS_CUDA_CUPTI_CUDA_TEE_H

#include <stddef.h>
#include <stdint.h>

/* The program is about to launch work on a device. Called while CUPTI holds no lock. */
void torsh_cuda_tee_launch(void);

/*
 * Copy the records in the first n_valid bytes of the buffer to the second client's buffers, if any.
 */
void torsh_cuda_tee_records(uint8_t *buffer, size_t n_valid);

#endif
