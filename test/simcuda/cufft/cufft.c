/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The simulated cuFFT: plans, which are small numbers, and a kernel for each transform. */
#include "cufft_api.h"
#include "test/simcuda/blas/object.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* As many plans at a time as PyTorch's cache keeps (4096 a device), and some. */
enum { MAX_PLANS = 1 << 14, WORK_BYTES = 4096 };

/* A plan is the index of its object; 0 is none. */
static void *plans[MAX_PLANS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards plans */

/*
 * Its object, which is no longer this plan's where it is taken; NULL where there is no such plan.
 */
static void *look_up(cufftHandle plan, bool is_taken)
{
	void *object;

	if (plan <= 0 || plan >= MAX_PLANS)
		return NULL;
	pthread_mutex_lock(&lock);
	object = plans[plan];
	if (is_taken)
		plans[plan] = NULL;
	pthread_mutex_unlock(&lock);
	return object;
}

static void *object_of(cufftHandle plan)
{
	return look_up(plan, false);
}

static cufftHandle place(void *object)
{
	cufftHandle plan = 1;

	pthread_mutex_lock(&lock);
	while (plan < MAX_PLANS && plans[plan])
		plan++;
	if (plan < MAX_PLANS)
		plans[plan] = object;
	pthread_mutex_unlock(&lock);
	return plan < MAX_PLANS ? plan : 0;
}

cufftResult do_cufftCreate(cufftHandle *handle)
{
	void *object = blas_object_create();

	*handle = object ? place(object) : 0;
	if (*handle)
		return CUFFT_SUCCESS;
	blas_object_destroy(object);
	return CUFFT_ALLOC_FAILED;
}

cufftResult do_cufftDestroy(cufftHandle plan)
{
	void *object = look_up(plan, true);

	blas_object_destroy(object);
	return object ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

cufftResult do_cufftSetStream(cufftHandle plan, cudaStream_t stream)
{
	void *object = object_of(plan);

	if (!object)
		return CUFFT_INVALID_PLAN;
	blas_object_set_stream(object, stream);
	return CUFFT_SUCCESS;
}

cufftResult do_cufftSetAutoAllocation(cufftHandle plan, int autoAllocate)
{
	return object_of(plan) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

cufftResult do_cufftSetWorkArea(cufftHandle plan, void *workArea)
{
	return object_of(plan) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

cufftResult do_cufftXtMakePlanMany(cufftHandle plan, int rank, long long int *n,
				   long long int *inembed, long long int istride,
				   long long int idist, cudaDataType inputtype,
				   long long int *onembed, long long int ostride,
				   long long int odist, cudaDataType outputtype,
				   long long int batch, size_t *workSize,
				   cudaDataType executiontype)
{
	*workSize = WORK_BYTES;
	return object_of(plan) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}

cufftResult do_cufftXtExec(cufftHandle plan, void *input, void *output, int direction)
{
	void *object = object_of(plan);

	if (!object)
		return CUFFT_INVALID_PLAN;
	return blas_object_launch(object, direction == CUFFT_FORWARD ? "vector_fft_forward_kernel"
								     : "vector_fft_inverse_kernel")
		       ? CUFFT_EXEC_FAILED
		       : CUFFT_SUCCESS;
}
