/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What calls of FFTW, oneDNN, cublasLt, cuDNN and cuFFT were given. It is read after the call,
 * while the arguments still exist, by the library's own queries; of a call that failed nothing is.
 */
#ifndef TORSH_COLLECTORS_BLAS_LIBRARIES_LIBRARY_CALL_H
#define TORSH_COLLECTORS_BLAS_LIBRARIES_LIBRARY_CALL_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/process/text_buffer.h"
#include "agent/wire/event.h"
#include "shim/blas/blas.h"

#define LIBRARY_SHAPE_BYTES 160u
#define LIBRARY_DETAILS_BYTES 96u

struct library_call {
	uint64_t m, n, k, batch; /* and 1; 0: it has none */
	uint32_t type, letters; /* as in the event */
	const char *routine; /* what the call does, "convolution" */
	struct text shape, details;
	char shape_bytes[LIBRARY_SHAPE_BYTES], details_bytes[LIBRARY_DETAILS_BYTES];
};

/* Argument i, from 0, as it was passed. */
static inline uint64_t library_argument(const struct blas_frame *frame, uint32_t i)
{
	return i < BLAS_REGISTERS ? frame->registers[i] : frame->stack[i - BLAS_REGISTERS];
}

/* An empty call, whose texts lie in it. */
void torsh_library_call_init(struct library_call *call);

/* Append a size, after a separator unless it is the first one. */
void torsh_library_put_size(struct library_call *call, uint64_t size, char separator);

/*
 * The definition of name in the library that was called; NULL: it has none. i: below BLAS_QUERIES,
 * one for each name that the slot's functions use.
 */
void *torsh_library_query(struct blas_slot *slot, uint32_t i, const char *name);

/* The letter of a type with CUDA's number, cudaDataType; 0: none. */
uint32_t torsh_library_cuda_type(uint64_t number);

/* Set what is known of the call, which has returned. */
void torsh_library_read(struct library_call *call, const struct blas_frame *frame);
void torsh_library_read_fft(struct library_call *call, const struct blas_frame *frame);
void torsh_library_read_dnnl(struct library_call *call, const struct blas_frame *frame);
void torsh_library_read_cublaslt(struct library_call *call, const struct blas_frame *frame);
void torsh_library_read_cudnn(struct library_call *call, const struct blas_frame *frame);

/* Set the event's fields, but its name, library and times. */
void torsh_library_call_label(const struct library_call *call, struct event *event);

/* A plan is about to be destroyed: another one may get its place. */
void torsh_library_forget_plan(const struct blas_frame *frame);

#endif
