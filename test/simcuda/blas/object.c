/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Objects of the simulated libraries. */
#include "test/simcuda/blas/object.h"
#include "test/simcuda/blas/blas.h"

#include <stdlib.h>

void *blas_object_create(void)
{
	return calloc(1, sizeof(struct blas_object));
}

void blas_object_destroy(void *object)
{
	free(object);
}

void blas_object_set_stream(void *object, CUstream stream)
{
	((struct blas_object *)object)->stream = stream;
}

CUstream blas_object_stream(const void *object)
{
	return ((const struct blas_object *)object)->stream;
}

CUresult blas_object_launch(void *object, const char *name)
{
	return blas_launch(name, 0, ((struct blas_object *)object)->stream);
}

CUresult blas_object_zero(void *object, void *ints, size_t n)
{
	return ints && n ? cuMemsetD32Async((CUdeviceptr)ints, 0, n,
					    ((struct blas_object *)object)->stream)
			 : CUDA_SUCCESS;
}
