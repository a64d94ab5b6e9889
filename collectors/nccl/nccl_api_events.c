/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls of NCCL's functions, as events of a communicator whose interface is NCCL_BY_CALLS. A
 * communicator is announced with its first call: before that it may not be complete, and it isn't
 * known whether the library reports to the agent itself, in which case nothing is recorded here.
 */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/process/process.h"
#include "agent/producer/key_map.h"
#include "agent/wire/event.h"
#include "shim/nccl/nccl.h"
#include "shim/nccl/nccl_api.h"
#include "shim/sys.h"

#define COMMS 4096u
#define COMM_WAYS 64u /* places that a handle may have */
#define PENDING 16u /* communicators of one group */

/* A communicator that was made and has not been destroyed. */
struct comm {
	_Atomic uint64_t handle; /* 0: free */
	_Atomic uint64_t context; /* of torsh_nccl_made; 0: no call yet */
	uint64_t hash; /* 0: unknown */
	_Atomic uint64_t n_splits;
	_Atomic uint64_t n_calls[N_NCCL_COLLECTIVES];
};

/* In pages that are zeroed in a forked child, which may not use its parent's communicators. */
struct state {
	_Atomic uint32_t n_of_one_process;
	struct comm comms[COMMS];
};

static void *_Atomic state; /* struct state */

/* The thread's open group. */
static _Thread_local struct {
	uint32_t depth, n_pending;
	uint64_t handle; /* of its event; 0: no call yet */
	struct {
		void *const *place; /* where NCCL stores the communicator until the group ends */
		uint64_t hash;
	} pending[PENDING];
} group;

static const char *const function_names[N_NCCL_FUNCTIONS] = {
	[NCCL_FUNCTION_AllReduce] = "AllReduce", [NCCL_FUNCTION_Broadcast] = "Broadcast",
	[NCCL_FUNCTION_Reduce] = "Reduce",	 [NCCL_FUNCTION_AllGather] = "AllGather",
	[NCCL_FUNCTION_AlltoAll] = "AlltoAll",	 [NCCL_FUNCTION_ReduceScatter] = "ReduceScatter",
	[NCCL_FUNCTION_Gather] = "Gather",	 [NCCL_FUNCTION_Scatter] = "Scatter",
	[NCCL_FUNCTION_Send] = "Send",		 [NCCL_FUNCTION_Recv] = "Recv",
};

/* ---- Communicators --------------------------------------------------------------------------- */

static struct comm *find(uint64_t handle)
{
	struct state *all = atomic_load_explicit(&state, memory_order_acquire);

	for (uint32_t i = 0; all && handle && i < COMM_WAYS; i++) {
		struct comm *comm = &all->comms[(torsh_key_map_mix(handle, 0) + i) % COMMS];

		if (atomic_load_explicit(&comm->handle, memory_order_acquire) == handle)
			return comm;
	}
	return NULL;
}

static void forget(struct comm *comm)
{
	if (comm->context)
		torsh_nccl_finalized(comm->context);
	atomic_store_explicit(&comm->handle, 0, memory_order_release);
}

/* Returns NULL without room: its calls are not recorded. */
static struct comm *add(uint64_t handle, uint64_t hash)
{
	struct state *all = torsh_sys_own_once(&state, sizeof(struct state));
	struct comm *known = find(handle);

	if (known)
		forget(known);
	for (uint32_t i = 0; all && handle && i < COMM_WAYS; i++) {
		struct comm *comm = &all->comms[(torsh_key_map_mix(handle, 0) + i) % COMMS];
		uint64_t there = 0;

		if (!atomic_compare_exchange_strong(&comm->handle, &there, UINT64_MAX))
			continue;
		comm->hash = hash;
		comm->context = 0;
		comm->n_splits = 0;
		for (uint32_t k = 0; k < N_NCCL_COLLECTIVES; k++)
			comm->n_calls[k] = 0;
		atomic_store_explicit(&comm->handle, handle, memory_order_release);
		return comm;
	}
	return NULL;
}

/* One that will be stored there when the thread's group ends, or has been. */
static void add_at(void *const *place, uint64_t hash)
{
	if (!group.depth)
		add((uintptr_t)*place, hash);
	else if (group.n_pending < PENDING) {
		group.pending[group.n_pending].place = place;
		group.pending[group.n_pending++].hash = hash;
	}
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
	return hash;
}

#define HASH_START UINT64_C(0xcbf29ce484222325)

void torsh_nccl_comms_made(void *const *comms, uint32_t n, const nccl_unique_id *id)
{
	int saved = errno;
	struct state *all = torsh_sys_own_once(&state, sizeof(struct state));
	uint64_t hash = HASH_START;

	if (id) {
		hash = hash_bytes(hash, id, sizeof(*id));
	} else if (all) {
		const uint64_t own[] = {
			torsh_process->channel.header->start_ticks, (uint64_t)torsh_sys_getpid(),
			atomic_fetch_add_explicit(&all->n_of_one_process, 1, memory_order_relaxed)};

		hash = hash_bytes(hash, own, sizeof(own));
	}
	for (uint32_t i = 0; i < n; i++)
		add_at(&comms[i], hash);
	errno = saved;
}

void torsh_nccl_comm_split(const void *parent, int color, void *const *made)
{
	int saved = errno;
	struct comm *of = find((uintptr_t)parent);
	uint64_t hash = 0;

	if (of) {
		const uint64_t part[] = {
			of->hash, atomic_fetch_add_explicit(&of->n_splits, 1, memory_order_relaxed),
			(uint64_t)(int64_t)color};

		if (of->hash)
			hash = hash_bytes(HASH_START, part, sizeof(part));
	}
	if (color >= 0)
		add_at(made, hash);
	errno = saved;
}

void torsh_nccl_comm_ends(const void *handle)
{
	int saved = errno;
	struct comm *comm = find((uintptr_t)handle);

	if (comm)
		forget(comm);
	errno = saved;
}

/* Announce the communicator with its first call. Returns its context. */
static uint64_t context_of(struct comm *comm, const void *handle)
{
	struct nccl_start start = {.version = NCCL_BY_CALLS, .hash = comm->hash, .rank = -1};
	uint64_t context = comm->context, none = 0;

	if (context)
		return context;
	if (!torsh_nccl_api_describe(handle, &start.rank, &start.n_ranks))
		start.rank = -1;
	context = torsh_nccl_made(&start);
	if (atomic_compare_exchange_strong(&comm->context, &none, context))
		return context;
	torsh_nccl_finalized(context);
	return none;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* The event of the thread's group, which begins with the first call. 0: there is no group. */
static uint64_t group_of(uint64_t context)
{
	struct nccl_descriptor descriptor = {.type.narrow = 0};

	if (!group.depth || group.handle)
		return group.handle;
	descriptor.type.wide = NCCL_TYPE_GROUP_API;
	descriptor.group_api.depth = (int)group.depth;
	group.handle = torsh_nccl_begins(NCCL_BY_CALLS, context, &descriptor);
	return group.handle;
}

static uint64_t begin(const struct nccl_api_call *call)
{
	bool is_message = call->function >= N_NCCL_COLLECTIVES;
	struct comm *comm = find((uintptr_t)call->comm);
	struct nccl_descriptor descriptor = {.type.narrow = 0};
	uint64_t context;

	if (!comm)
		comm = add((uintptr_t)call->comm, 0);
	if (!comm)
		return 0;
	context = context_of(comm, call->comm);
	descriptor.type.wide = is_message ? NCCL_TYPE_MESSAGE : NCCL_TYPE_COLLECTIVE;
	descriptor.parent = (void *)group_of(context);
	descriptor.call.function = function_names[call->function];
	descriptor.call.stream = call->stream;
	descriptor.call.sequence =
		is_message ? COLLECTIVE_NO_SEQUENCE
			   : atomic_fetch_add_explicit(&comm->n_calls[call->function], 1,
						       memory_order_relaxed);
	descriptor.call.count = call->count;
	descriptor.call.root = call->root;
	descriptor.call.peer = call->peer;
	descriptor.call.datatype = call->datatype;
	return torsh_nccl_begins(NCCL_BY_CALLS, context, &descriptor);
}

uint64_t torsh_nccl_call_begins(const struct nccl_api_call *call)
{
	int saved = errno;
	uint64_t handle =
		call->comm && torsh_nccl_mask() && !torsh_nccl_api_is_reported() ? begin(call) : 0;

	errno = saved;
	return handle;
}

void torsh_nccl_call_ends(uint64_t handle)
{
	int saved = errno;

	if (handle)
		torsh_nccl_ends(handle);
	errno = saved;
}

/* ---- Groups ---------------------------------------------------------------------------------- */

void torsh_nccl_group_began(void)
{
	group.depth++;
}

void torsh_nccl_group_ended(bool has_failed)
{
	int saved = errno;

	if (!group.depth || --group.depth)
		return;
	torsh_nccl_call_ends(group.handle);
	group.handle = 0;
	for (uint32_t i = 0; i < group.n_pending && !has_failed; i++)
		add((uintptr_t)*group.pending[i].place, group.pending[i].hash);
	group.n_pending = 0;
	errno = saved;
}
