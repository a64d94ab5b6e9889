/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An opaque object that a simulated library returns: a handle with the stream of its kernels, or a
 * description. Used by generated functions (gen/behaviour.py).
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
