/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a call of a routine of BLAS or LAPACK was given. */
#ifndef TORSH_COLLECTORS_BLAS_BLAS_ARGUMENTS_H
#define TORSH_COLLECTORS_BLAS_BLAS_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/blas/blas.h"

/*
 * Set the frame's m, n, k, batch and letters. Returns false for a call that only queries how large
 * its work has to be.
 */
bool torsh_blas_arguments_read(struct blas_frame *frame);

/* The type's letter, as in the event. */
uint32_t torsh_blas_type(const struct blas_frame *frame);

#endif
