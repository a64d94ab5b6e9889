/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A wrapper for each interposed function of NCCL. It passes its arguments on as it got them, and
 * reports to collectors/nccl what happens. The next definition is another tool's, if one has
 * wrappers of its own, or the library's.
 */
#include <stdatomic.h>

#include "shim/nccl/nccl_api.h"

#define NEXT(name) atomic_load_explicit(&torsh_nccl_api[NCCL_API_##name].next, memory_order_relaxed)

/* ---- Collectives and messages ---------------------------------------------------------------- */

#define MOVES(name, function_, parameters, arguments, ...)                                \
	static int wrap_##name parameters                                                 \
	{                                                                                 \
		int(*next) parameters;                                                    \
		const struct nccl_api_call call = {.function = NCCL_FUNCTION_##function_, \
						   .count = count,                        \
						   .datatype = (uint8_t)datatype,         \
						   .comm = comm,                          \
						   .stream = stream,                      \
						   __VA_ARGS__};                          \
		uint64_t handle;                                                          \
		int result;                                                               \
                                                                                          \
		*(void **)&next = NEXT(name);                                             \
		handle = torsh_nccl_call_begins(&call);                                   \
		result = next arguments;                                                  \
		torsh_nccl_call_ends(handle);                                             \
		return result;                                                            \
	}

typedef const void *from_t;
typedef void *to_t;
typedef const void *comm_t;
typedef void *stream_t;

MOVES(ncclAllReduce, AllReduce,
      (from_t from, to_t to, size_t count, int datatype, int op, comm_t comm, stream_t stream),
      (from, to, count, datatype, op, comm, stream), .peer = -1)
MOVES(ncclBroadcast, Broadcast,
      (from_t from, to_t to, size_t count, int datatype, int root, comm_t comm, stream_t stream),
      (from, to, count, datatype, root, comm, stream), .root = root)
MOVES(ncclBcast, Broadcast,
      (to_t buffer, size_t count, int datatype, int root, comm_t comm, stream_t stream),
      (buffer, count, datatype, root, comm, stream), .root = root)
MOVES(ncclReduce, Reduce,
      (from_t from, to_t to, size_t count, int datatype, int op, int root, comm_t comm,
       stream_t stream),
      (from, to, count, datatype, op, root, comm, stream), .root = root)
MOVES(ncclAllGather, AllGather,
      (from_t from, to_t to, size_t count, int datatype, comm_t comm, stream_t stream),
      (from, to, count, datatype, comm, stream), .peer = -1)
MOVES(ncclReduceScatter, ReduceScatter,
      (from_t from, to_t to, size_t count, int datatype, int op, comm_t comm, stream_t stream),
      (from, to, count, datatype, op, comm, stream), .peer = -1)
MOVES(ncclAlltoAll, AlltoAll,
      (from_t from, to_t to, size_t count, int datatype, comm_t comm, stream_t stream),
      (from, to, count, datatype, comm, stream), .peer = -1)
MOVES(ncclGather, Gather,
      (from_t from, to_t to, size_t count, int datatype, int root, comm_t comm, stream_t stream),
      (from, to, count, datatype, root, comm, stream), .root = root)
MOVES(ncclScatter, Scatter,
      (from_t from, to_t to, size_t count, int datatype, int root, comm_t comm, stream_t stream),
      (from, to, count, datatype, root, comm, stream), .root = root)
MOVES(ncclSend, Send,
      (from_t from, size_t count, int datatype, int peer, comm_t comm, stream_t stream),
      (from, count, datatype, peer, comm, stream), .peer = peer)
MOVES(ncclRecv, Recv, (to_t to, size_t count, int datatype, int peer, comm_t comm, stream_t stream),
      (to, count, datatype, peer, comm, stream), .peer = peer)
#undef MOVES

/* ---- Groups ---------------------------------------------------------------------------------- */

static int wrap_ncclGroupStart(void)
{
	int (*next)(void), result;

	*(void **)&next = NEXT(ncclGroupStart);
	result = next();
	if (result == NCCL_SUCCESS)
		torsh_nccl_group_began();
	return result;
}

static int wrap_ncclGroupEnd(void)
{
	int (*next)(void), result;

	*(void **)&next = NEXT(ncclGroupEnd);
	result = next();
	torsh_nccl_group_ended(result != NCCL_SUCCESS && result != NCCL_IN_PROGRESS);
	return result;
}

/* ---- Communicators --------------------------------------------------------------------------- */

static bool is_made(int result)
{
	return result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS;
}

static int wrap_ncclCommInitRank(void **comm, int n_ranks, nccl_unique_id id, int rank)
{
	int (*next)(void **, int, nccl_unique_id, int), result;

	*(void **)&next = NEXT(ncclCommInitRank);
	result = next(comm, n_ranks, id, rank);
	if (is_made(result))
		torsh_nccl_comms_made(comm, 1, &id);
	return result;
}

static int wrap_ncclCommInitRankConfig(void **comm, int n_ranks, nccl_unique_id id, int rank,
				       void *config)
{
	int (*next)(void **, int, nccl_unique_id, int, void *), result;

	*(void **)&next = NEXT(ncclCommInitRankConfig);
	result = next(comm, n_ranks, id, rank, config);
	if (is_made(result))
		torsh_nccl_comms_made(comm, 1, &id);
	return result;
}

static int wrap_ncclCommInitRankScalable(void **comm, int n_ranks, int rank, int n_ids,
					 nccl_unique_id *ids, void *config)
{
	int (*next)(void **, int, int, int, nccl_unique_id *, void *), result;

	*(void **)&next = NEXT(ncclCommInitRankScalable);
	result = next(comm, n_ranks, rank, n_ids, ids, config);
	if (is_made(result))
		torsh_nccl_comms_made(comm, 1, ids);
	return result;
}

static int wrap_ncclCommInitAll(void **comms, int n_devices, const int *devices)
{
	int (*next)(void **, int, const int *), result;

	*(void **)&next = NEXT(ncclCommInitAll);
	result = next(comms, n_devices, devices);
	if (is_made(result))
		torsh_nccl_comms_made(comms, (uint32_t)n_devices, NULL);
	return result;
}

static int wrap_ncclCommSplit(void *comm, int color, int key, void **made, void *config)
{
	int (*next)(void *, int, int, void **, void *), result;

	*(void **)&next = NEXT(ncclCommSplit);
	result = next(comm, color, key, made, config);
	if (is_made(result))
		torsh_nccl_comm_split(comm, color, made);
	return result;
}

#define ENDS(name)                            \
	static int wrap_##name(void *comm)    \
	{                                     \
		int (*next)(void *);          \
                                              \
		*(void **)&next = NEXT(name); \
		torsh_nccl_comm_ends(comm);   \
		return next(comm);            \
	}
ENDS(ncclCommDestroy)
ENDS(ncclCommAbort)
#undef ENDS

struct nccl_api_function torsh_nccl_api[N_NCCL_API] = {
#define CALL(name_) [NCCL_API_##name_] = {.name = #name_, .wrapper = (void *)wrap_##name_},
#include "shim/nccl/nccl_api.def"
};
