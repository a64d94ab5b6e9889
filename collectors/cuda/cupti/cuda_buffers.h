/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The buffers that CUPTI fills with activity records; the agent owns them. */
#ifndef TORSH_COLLECTORS_CUDA_CUPTI_CUDA_BUFFERS_H
#define TORSH_COLLECTORS_CUDA_CUPTI_CUDA_BUFFERS_H

#include <stddef.h>
#include <stdint.h>

/* CUpti_BuffersCallbackRequestFunc: *buffer is NULL without memory. */
void torsh_cuda_request_buffer(uint8_t **buffer, size_t *n_bytes, size_t *n_records);

/* CUpti_BuffersCallbackCompleteFunc: record the first n_valid bytes and take the buffer back. */
void torsh_cuda_complete_buffer(void *context, uint32_t stream, uint8_t *buffer, size_t n_bytes,
				size_t n_valid);

/* Add the records that CUPTI dropped since the last query to the losses. */
void torsh_cuda_count_dropped(void *context, uint32_t stream);

/* The number of buffers that CUPTI holds. */
uint32_t torsh_cuda_buffers_out(void);

#endif
