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
#include <unistd.h>

#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/log/log.h"
#include "test/simcuda/engine/work.h"
#include "test/simcuda/nccl/profiler.h"

#define EXPORT __attribute__((visibility("default")))

struct communicator {
	int n_ranks, rank, device;
	CUdeviceptr buffers; /* 0: none */
	struct profiler *profiler; /* NULL: none */
	unsigned number; /* in the log */
};

static struct communicator *communicator_of(ncclComm_t comm)
{
	return (struct communicator *)comm;
}

ncclResult_t do_ncclGetVersion(int *version)
{
	*version = profiler_nccl_version();
	return ncclSuccess;
}

ncclResult_t do_ncclGetUniqueId(ncclUniqueId *uniqueId)
{
	static _Atomic unsigned n_ids;

	memset(uniqueId, 0, sizeof(*uniqueId));
	snprintf((char *)uniqueId, sizeof(*uniqueId), "simcuda %d %u", (int)getpid(), ++n_ids);
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

/* The same on all ranks. */
static uint64_t hash_of(const ncclUniqueId *id)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < sizeof(*id); i++)
		hash = (hash ^ ((const unsigned char *)id)[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static ncclResult_t create(ncclComm_t *comm, int n_ranks, const ncclUniqueId *id, int rank,
			   const char *name)
{
	static _Atomic unsigned last_number;
	struct communicator *communicator;
	CUdevice device;

	if (rank < 0 || rank >= n_ranks)
		return ncclInvalidArgument;
	if (current_device(&device))
		return ncclUnhandledCudaError;
	communicator = malloc(sizeof(*communicator));
	*communicator = (struct communicator){n_ranks, rank, device, 0, NULL, ++last_number};
	if (sim_config()->workspace_bytes &&
	    cuMemAlloc(&communicator->buffers, sim_config()->workspace_bytes)) {
		free(communicator);
		return ncclUnhandledCudaError;
	}
	sim_log("{\"kind\":\"nccl\",\"what\":\"made\",\"communicator\":%u,\"hash\":%llu,"
		"\"ranks\":%d,\"rank\":%d}",
		communicator->number, (unsigned long long)hash_of(id), n_ranks, rank);
	communicator->profiler = profiler_begin(name, hash_of(id), n_ranks, rank);
	*comm = (ncclComm_t)communicator;
	return ncclSuccess;
}

ncclResult_t do_ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank)
{
	return create(comm, nranks, &commId, rank, NULL);
}

ncclResult_t do_ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank,
				       ncclConfig_t *config)
{
	return create(comm, nranks, &commId, rank, config ? config->commName : NULL);
}

static void destroy(ncclComm_t comm)
{
	if (comm)
		profiler_end(communicator_of(comm)->profiler);
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

/* ---- Profiled calls -------------------------------------------------------------------------- */

static _Thread_local int group_depth;

/* Report a call; outside of a group it is launched at once. peer: of a message, else -1. */
static void report(ncclComm_t comm, const char *function, const void *from, void *to, size_t count,
		   ncclDataType_t type, int root, int peer, cudaStream_t stream)
{
	const struct profiled_call call = {function, from, to, count, type, root, peer, stream};

	if (!comm)
		return;
	sim_log("{\"kind\":\"nccl\",\"what\":\"call\",\"communicator\":%u,\"function\":\"%s\","
		"\"datatype\":\"%s\",\"count\":%zu,\"root\":%d,\"peer\":%d,\"stream\":%llu,"
		"\"depth\":%d}",
		communicator_of(comm)->number, function, profiler_type_name(type), count, root,
		peer, (unsigned long long)(uintptr_t)stream, group_depth);
	profiler_call(communicator_of(comm)->profiler, &call, group_depth);
	if (!group_depth)
		profiler_launch();
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
static _Thread_local int n_in_group;

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
	profiler_launch();
	return result;
}

ncclResult_t do_ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
			      ncclDataType_t datatype, int root, ncclComm_t comm,
			      cudaStream_t stream)
{
	struct broadcast broadcast = {comm, recvbuff, sendbuff, count, datatype, root, stream};

	if (!comm)
		return ncclInvalidArgument;
	report(comm, "Broadcast", sendbuff, recvbuff, count, datatype, root, -1, stream);
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
	report(comm, "AllReduce", sendbuff, recvbuff, count, datatype, 0, -1, stream);
	return collect(comm, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", stream);
}

ncclResult_t do_ncclReduce(const void *sendbuff, void *recvbuff, size_t count,
			   ncclDataType_t datatype, ncclRedOp_t op, int root, ncclComm_t comm,
			   cudaStream_t stream)
{
	report(comm, "Reduce", sendbuff, recvbuff, count, datatype, root, -1, stream);
	return collect(comm, "ncclDevKernel_Reduce_Sum_f32_RING_LL", stream);
}

ncclResult_t do_ncclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
			      ncclDataType_t datatype, ncclComm_t comm, cudaStream_t stream)
{
	report(comm, "AllGather", sendbuff, recvbuff, sendcount, datatype, 0, -1, stream);
	return bring(comm, "ncclDevKernel_AllGather_RING_LL", recvbuff, sendbuff, sendcount,
		     datatype, comm ? communicator_of(comm)->n_ranks : 0, stream);
}

ncclResult_t do_ncclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
				  ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
				  cudaStream_t stream)
{
	report(comm, "ReduceScatter", sendbuff, recvbuff, recvcount, datatype, 0, -1, stream);
	return collect(comm, "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", stream);
}

ncclResult_t do_ncclSend(const void *sendbuff, size_t count, ncclDataType_t datatype, int peer,
			 ncclComm_t comm, cudaStream_t stream)
{
	report(comm, "Send", sendbuff, (void *)sendbuff, count, datatype, 0, peer, stream);
	return collect(comm, "ncclDevKernel_SendRecv", stream);
}

ncclResult_t do_ncclRecv(void *recvbuff, size_t count, ncclDataType_t datatype, int peer,
			 ncclComm_t comm, cudaStream_t stream)
{
	report(comm, "Recv", recvbuff, recvbuff, count, datatype, 0, peer, stream);
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
