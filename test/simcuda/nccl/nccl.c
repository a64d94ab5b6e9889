/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The simulated NCCL: every collective launches a kernel named as NCCL's are. Ranks don't meet:
 * what another rank does or fails to do has no effect here. Each is taken to have what this one
 * has, where a collective only brings it along; sums are not made.
 */
#include "nccl_api.h"
#include "test/simcuda/blas/blas.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/work.h"

#define EXPORT __attribute__((visibility("default")))

struct communicator {
	int n_ranks, rank, device;
	CUdeviceptr buffers; /* 0: none */
};

static struct communicator *communicator_of(ncclComm_t comm)
{
	return (struct communicator *)comm;
}

ncclResult_t do_ncclGetVersion(int *version)
{
	*version = NCCL_VERSION_CODE;
	return ncclSuccess;
}

ncclResult_t do_ncclGetUniqueId(ncclUniqueId *uniqueId)
{
	memset(uniqueId, 0, sizeof(*uniqueId));
	snprintf((char *)uniqueId, sizeof(*uniqueId), "simcuda");
	return ncclSuccess;
}

/*
 * The device of this thread; one that has used none yet gets the first, as by any call of the
 * runtime's.
 */
static CUresult current_device(CUdevice *device)
{
	CUcontext context;
	CUresult result = cuInit(0);

	if (!result)
		result = cuCtxGetCurrent(&context);
	if (!result && !context) {
		result = cuDevicePrimaryCtxRetain(&context, 0);
		if (!result)
			result = cuCtxSetCurrent(context);
	}
	return result ? result : cuCtxGetDevice(device);
}

static ncclResult_t create(ncclComm_t *comm, int n_ranks, int rank)
{
	struct communicator *communicator;
	CUdevice device;

	if (rank < 0 || rank >= n_ranks)
		return ncclInvalidArgument;
	if (current_device(&device))
		return ncclUnhandledCudaError;
	communicator = malloc(sizeof(*communicator));
	*communicator = (struct communicator){n_ranks, rank, device, 0};
	if (sim_config()->workspace_bytes &&
	    cuMemAlloc(&communicator->buffers, sim_config()->workspace_bytes)) {
		free(communicator);
		return ncclUnhandledCudaError;
	}
	*comm = (ncclComm_t)communicator;
	return ncclSuccess;
}

ncclResult_t do_ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank)
{
	return create(comm, nranks, rank);
}

ncclResult_t do_ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank,
				       ncclConfig_t *config)
{
	return create(comm, nranks, rank);
}

static void destroy(ncclComm_t comm)
{
	if (comm && communicator_of(comm)->buffers)
		cuMemFree(communicator_of(comm)->buffers);
	free(comm);
}

ncclResult_t do_ncclCommDestroy(ncclComm_t comm)
{
	destroy(comm);
	return ncclSuccess;
}

ncclResult_t do_ncclCommAbort(ncclComm_t comm)
{
	destroy(comm);
	return ncclSuccess;
}

ncclResult_t do_ncclCommFinalize(ncclComm_t comm)
{
	return comm ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t do_ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
	*asyncError = ncclSuccess;
	return comm ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t do_ncclCommCount(const ncclComm_t comm, int *count)
{
	*count = communicator_of(comm)->n_ranks;
	return ncclSuccess;
}

ncclResult_t do_ncclCommUserRank(const ncclComm_t comm, int *rank)
{
	*rank = communicator_of(comm)->rank;
	return ncclSuccess;
}

static size_t type_bytes(ncclDataType_t type)
{
	switch (type) {
	case ncclInt32:
	case ncclUint32:
	case ncclFloat32:
		return 4;
	case ncclInt64:
	case ncclUint64:
	case ncclFloat64:
		return 8;
	case ncclFloat16:
	case ncclBfloat16:
		return 2;
	default:
		return 1;
	}
}

/*
 * A kernel that brings count elements to so many places side by side; times is 0 where it does
 * nothing to memory.
 */
static ncclResult_t bring(ncclComm_t comm, const char *kernel, void *to, const void *from,
			  size_t count, ncclDataType_t type, int times, cudaStream_t stream)
{
	struct sim_gather gather = {(uintptr_t)to, (uintptr_t)from, count * type_bytes(type),
				    (unsigned)times};
	CUresult result;

	if (!comm)
		return ncclInvalidArgument;
	sim_kernel_gathers(&gather);
	result = blas_launch(kernel, 0, stream);
	sim_kernel_gathers(NULL);
	return result ? ncclUnhandledCudaError : ncclSuccess;
}

static ncclResult_t collect(ncclComm_t comm, const char *kernel, cudaStream_t stream)
{
	return bring(comm, kernel, NULL, NULL, 0, ncclInt8, 0, stream);
}

/* ---- Broadcasts, and groups of them ---------------------------------------------------------- */

enum { MAX_IN_GROUP = 256 };

struct broadcast {
	ncclComm_t comm;
	void *to;
	const void *from;
	size_t count;
	ncclDataType_t type;
	int root;
	cudaStream_t stream;
};

/* Those of the group that this thread has begun, which run when it ends. */
static _Thread_local struct broadcast in_group[MAX_IN_GROUP];
static _Thread_local int n_in_group, group_depth;

/*
 * The result of a broadcast: the root's bytes. Another rank's are those that this one sends in the
 * same group, where each rank sends its own to all others.
 */
static const void *source_of(const struct broadcast *broadcast)
{
	int rank = communicator_of(broadcast->comm)->rank;

	for (int i = 0; i < n_in_group && broadcast->root != rank; i++) {
		const struct broadcast *own = &in_group[i];

		if (own->comm == broadcast->comm && own->root == rank &&
		    own->count == broadcast->count && own->type == broadcast->type)
			return own->from;
	}
	return broadcast->from;
}

static ncclResult_t perform(const struct broadcast *broadcast)
{
	return bring(broadcast->comm, "ncclDevKernel_Broadcast_RING_LL", broadcast->to,
		     source_of(broadcast), broadcast->count, broadcast->type, 1, broadcast->stream);
}

ncclResult_t do_ncclGroupStart(void)
{
	group_depth++;
	return ncclSuccess;
}

ncclResult_t do_ncclGroupEnd(void)
{
	ncclResult_t result = ncclSuccess;

	if (!group_depth)
		return ncclInvalidUsage;
	if (--group_depth)
		return ncclSuccess;
	for (int i = 0; i < n_in_group && !result; i++)
		result = perform(&in_group[i]);
	n_in_group = 0;
	return result;
}

ncclResult_t do_ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
			      ncclDataType_t datatype, int root, ncclComm_t comm,
			      cudaStream_t stream)
{
	struct broadcast broadcast = {comm, recvbuff, sendbuff, count, datatype, root, stream};

	if (!comm)
		return ncclInvalidArgument;
	if (!group_depth)
		return perform(&broadcast);
	if (n_in_group == MAX_IN_GROUP)
		return ncclInternalError;
	in_group[n_in_group++] = broadcast;
	return ncclSuccess;
}

ncclResult_t do_ncclBcast(void *buff, size_t count, ncclDataType_t datatype, int root,
			  ncclComm_t comm, cudaStream_t stream)
{
	return do_ncclBroadcast(buff, buff, count, datatype, root, comm, stream);
}

/* ---- Other collectives ----------------------------------------------------------------------- */

ncclResult_t do_ncclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
			      ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
			      cudaStream_t stream)
{
	return collect(comm, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", stream);
}

ncclResult_t do_ncclReduce(const void *sendbuff, void *recvbuff, size_t count,
			   ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
			   cudaStream_t stream)
{
	return collect(comm, "ncclDevKernel_Reduce_Sum_f32_RING_LL", stream);
}

ncclResult_t do_ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
			      ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
	return bring(comm, "ncclDevKernel_AllGather_RING_LL", recvbuff, sendbuff, sendcount,
		     datatype, comm ? communicator_of(comm)->n_ranks : 0, stream);
}

ncclResult_t do_ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
				  ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
				  cudaStream_t stream)
{
	return collect(comm, "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", stream);
}

ncclResult_t do_ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,
			 ncclComm_t comm, cudaStream_t stream)
{
	return collect(comm, "ncclDevKernel_SendRecv", stream);
}

ncclResult_t do_ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
			 ncclComm_t comm, cudaStream_t stream)
{
	return collect(comm, "ncclDevKernel_SendRecv", stream);
}

ncclResult_t do_ncclMemAlloc(void **ptr, size_t size)
{
	return cuMemAlloc((CUdeviceptr *)ptr, size) ? ncclUnhandledCudaError : ncclSuccess;
}

ncclResult_t do_ncclMemFree(void *ptr)
{
	return cuMemFree((CUdeviceptr)(uintptr_t)ptr) ? ncclUnhandledCudaError : ncclSuccess;
}

/* Registered memory is as good as other memory: a handle is its address. */
ncclResult_t do_ncclCommRegister(const ncclComm_t comm, void *buff, size_t size, void **handle)
{
	*handle = buff;
	return comm ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t do_ncclCommDeregister(const ncclComm_t comm, void *handle)
{
	return comm ? ncclSuccess : ncclInvalidArgument;
}

EXPORT const char *ncclGetErrorString(ncclResult_t result)
{
	return result == ncclSuccess ? "no error" : "simulated NCCL error";
}

EXPORT const char *ncclGetLastError(ncclComm_t comm)
{
	return "";
}
