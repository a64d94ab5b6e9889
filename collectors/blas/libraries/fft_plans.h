/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The plans of Fourier transforms that the program made, by their handles. Any thread, without
 * locks. There are at most FFT_PLANS at one time; calls with others have no sizes.
 */
#ifndef TORSH_COLLECTORS_BLAS_LIBRARIES_FFT_PLANS_H
#define TORSH_COLLECTORS_BLAS_LIBRARIES_FFT_PLANS_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/blas/blas.h"

#define FFT_PLANS 1024u
#define FFT_RANK 6u /* sizes that are kept */

struct fft_plan {
	uint64_t sizes[FFT_RANK], batch;
	uint32_t rank; /* as given; more than FFT_RANK: the sizes are not kept */
	uint32_t flags; /* FFTW's */
	int32_t sign; /* FFTW_FORWARD or FFTW_BACKWARD; 0: given at the call, or none */
	uint8_t kind; /* enum fft_kind */
	uint8_t type; /* the event's */
	bool is_in_place;
};

/* Keep the plan with this handle, which isn't 0, in place of a former one. */
void torsh_fft_plan_keep(uint64_t handle, const struct fft_plan *plan);

/* Copy the plan with this handle. Returns false if it isn't known. */
bool torsh_fft_plan_find(uint64_t handle, struct fft_plan *plan);

/* The handle is about to be released. */
void torsh_fft_plan_forget(uint64_t handle);

#endif
