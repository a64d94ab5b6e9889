/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An object that a simulated library hands out, of which nothing need be known: a handle, whose
 * kernels go to a stream, or a description. What generated functions (gen/behaviour.py) work with.
 */
#ifndef SIMCUDA_BLAS_OBJECT_H
#define SIMCUDA_BLAS_OBJECT_H

#include <cuda.h>
#include <stddef.h>

/* What every handle begins with. */
struct blas_object {
	CUstream stream;
};

/* NULL without memory; the caller destroys it. */
void *blas_object_create(void);
void blas_object_destroy(void *object);
void blas_object_set_stream(void *object, CUstream stream);
CUstream blas_object_stream(const void *object);

/* A kernel of this name on the object's stream. */
CUresult blas_object_launch(void *object, const char *name);

/* So many ints of the device are 0 once the stream is there; ints may be NULL. */
CUresult blas_object_zero(void *object, void *ints, size_t n);

#endif
