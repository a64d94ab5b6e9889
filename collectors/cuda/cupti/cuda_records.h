/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* CUPTI's activity records as events. */
#ifndef TORSH_COLLECTORS_CUDA_CUPTI_CUDA_RECORDS_H
#define TORSH_COLLECTORS_CUDA_CUPTI_CUDA_RECORDS_H

#include <stddef.h>
#include <stdint.h>

/* Record the activities in the first n_valid bytes of a buffer; where CUPTI may hold its locks. */
void torsh_cuda_take_records(uint8_t *buffer, size_t n_valid);

#endif
