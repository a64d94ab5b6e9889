/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Persistent requests: a call prepares a message or a collective, which others start again and
 * again. Each start is an event with the name of the function that prepared it. A message is
 * counted when it is started, as any other one. Ranks prepare collectives in the same order, but
 * may start them in any, so that the key has both: the number of the request among those of the
 * communicator, from 1 on, in the upper half of the sequence, and of its starts in the lower one.
 */
#include <stdatomic.h>

#include "agent/producer/key_map.h"
#include "agent/wire/event.h"
#include "collectors/mpi/mpi_bytes.h"
#include "collectors/mpi/mpi_calls.h"
#include "collectors/mpi/mpi_events.h"
#include "collectors/mpi/mpi_requests.h"
#include "shim/sys.h"

#define PREPARED 16384u
#define WAYS 32u
#define BEING_ADDED 1u /* no handle */

struct prepared {
	_Atomic uint64_t handle; /* 0: free */
	const struct mpi_call *call;
	uint64_t comm_handle;
	uint32_t comm; /* number of its group; 0: not known */
	int peer, tag;
	struct mpi_bytes bytes;
	uint64_t order; /* of a collective, shifted */
	_Atomic uint32_t n_starts;
};

static void *_Atomic table; /* of struct prepared, in pages that are zeroed in a forked child */

static struct prepared *place_of(struct prepared *all, uint64_t handle, uint32_t way)
{
	return &all[(torsh_key_map_mix(handle, 0) + way) % PREPARED];
}

static struct prepared *find(uint64_t handle)
{
	struct prepared *all = atomic_load_explicit(&table, memory_order_acquire);

	for (uint32_t i = 0; all && handle > BEING_ADDED && i < WAYS; i++) {
		struct prepared *place = place_of(all, handle, i);

		if (atomic_load_explicit(&place->handle, memory_order_acquire) == handle)
			return place;
	}
	return NULL;
}

/* A free place, taken; NULL if there is none. */
static struct prepared *take_place(uint64_t handle)
{
	struct prepared *all = torsh_sys_own_once(&table, PREPARED * sizeof(struct prepared));

	for (uint32_t i = 0; all && i < WAYS; i++) {
		struct prepared *place = place_of(all, handle, i);
		uint64_t there = 0;

		if (atomic_compare_exchange_strong(&place->handle, &there, BEING_ADDED))
			return place;
	}
	return NULL;
}

void torsh_mpi_prepared_forget(uint64_t handle)
{
	struct prepared *place = find(handle);

	if (place)
		atomic_store_explicit(&place->handle, 0, memory_order_release);
}

/* ---- prepare --------------------------------------------------------------------------------- */

static enum mpi_role role_of(const struct mpi_call *call)
{
	return call->at.what ? (enum mpi_role)call->at.what : MPI_COLLECTIVE;
}

static void fill(struct prepared *place, const struct mpi_call_now *now)
{
	const struct mpi_layout *at = &now->call->at;
	struct mpi_comm *comm = torsh_mpi_comm_of(now);
	bool is_message = role_of(now->call) != MPI_COLLECTIVE;

	place->call = now->call;
	place->comm_handle = torsh_mpi_comm(now->arguments, at->comm, false);
	place->comm = comm ? comm->number : 0;
	place->peer = at->peer ? torsh_mpi_int(now->arguments, at->peer) : -1;
	place->tag = at->tag ? torsh_mpi_int(now->arguments, at->tag) : 0;
	place->order = 0;
	atomic_store_explicit(&place->n_starts, 0, memory_order_relaxed);
	place->bytes = (struct mpi_bytes){0};
	if (is_message)
		place->bytes = torsh_mpi_message_bytes(now->arguments, at->count, at->type);
	else if (comm)
		place->bytes = torsh_mpi_bytes(now->arguments, at, comm->rank, comm->size);
	if (!is_message && comm)
		place->order =
			atomic_fetch_add_explicit(&comm->n_prepared, 1, memory_order_relaxed) + 1;
}

void torsh_mpi_prepared(const struct mpi_call_now *now)
{
	uint64_t handle =
		now->has_failed ? 0 : torsh_mpi_request(now->arguments, now->call->at.request, 0);
	struct prepared *place;

	if (handle <= BEING_ADDED)
		return;
	torsh_mpi_prepared_forget(handle);
	place = take_place(handle);
	if (!place)
		return;
	fill(place, now);
	/* Pairs with the acquire in find. */
	atomic_store_explicit(&place->handle, handle, memory_order_release);
}

/* ---- start ----------------------------------------------------------------------------------- */

static uint32_t begin_collective(struct prepared *prepared)
{
	uint64_t n = atomic_fetch_add_explicit(&prepared->n_starts, 1, memory_order_relaxed);
	const struct event_collective begin = {
		.group = prepared->comm,
		.kind = COLLECTIVE_OF_ALL,
		.sequence = prepared->comm ? prepared->order << 32 | n : COLLECTIVE_NO_SEQUENCE,
		.peer = prepared->peer < 0 ? 0 : (uint32_t)prepared->peer + 1,
	};

	return torsh_mpi_send_begin(&begin, prepared->call->name);
}

/* The communicator, if it still is the one that the request was prepared with. */
static struct mpi_comm *comm_of_prepared(const struct prepared *prepared)
{
	struct mpi_comm *comm = prepared->comm ? torsh_mpi_comm_find(prepared->comm_handle) : NULL;

	return comm && comm->number == prepared->comm ? comm : NULL;
}

static void start(struct mpi_hook *hook, struct prepared *prepared, uint64_t handle)
{
	enum mpi_role role = role_of(prepared->call);
	struct mpi_comm *comm = comm_of_prepared(prepared);
	const char *name = prepared->call->name;
	struct mpi_request request = {.comm = prepared->comm,
				      .comm_handle = prepared->comm_handle,
				      .is_persistent = true,
				      .is_receive = role == MPI_RECEIVE,
				      .has_bytes = prepared->bytes.is_known,
				      .bytes = prepared->bytes.in};

	hook->is_uncertain = hook->is_alone = false;
	hook->joined = 0;
	if (role == MPI_COLLECTIVE)
		request.number = begin_collective(prepared);
	else if (role == MPI_SEND)
		request.number = torsh_mpi_send_counted(comm, name, prepared->peer, prepared->tag);
	else
		request.number =
			torsh_mpi_receive_counted(hook, comm, name, prepared->peer, prepared->tag);
	request.is_uncertain = hook->is_uncertain;
	request.is_alone = hook->is_alone;
	request.joined = hook->joined;
	if (!request.number && !request.is_uncertain)
		return;
	torsh_mpi_send_moved(&(struct event_collective_moved){
		.number = request.number,
		.has_bytes = prepared->bytes.is_known,
		.in_bytes = role == MPI_RECEIVE ? 0 : prepared->bytes.in,
		.out_bytes = role == MPI_SEND ? 0 : prepared->bytes.out,
	});
	torsh_mpi_request_put(handle, false, &request);
}

static uint32_t n_requests(const struct mpi_call_now *now)
{
	const struct mpi_layout *at = &now->call->at;
	int n = at->n_requests ? torsh_mpi_int(now->arguments, at->n_requests) : 1;

	return n > 0 ? (uint32_t)n : 0;
}

/* Before the call: afterwards another thread may already wait for it. */
void torsh_mpi_start(struct mpi_hook *hook, const struct mpi_call_now *now)
{
	uint32_t n = n_requests(now);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t handle = torsh_mpi_request(now->arguments, now->call->at.request, i);
		struct prepared *prepared = find(handle);

		if (prepared)
			start(hook, prepared, handle);
	}
}

void torsh_mpi_started(const struct mpi_call_now *now)
{
	uint32_t n = now->has_failed ? n_requests(now) : 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t handle = torsh_mpi_request(now->arguments, now->call->at.request, i);
		uint32_t index = handle ? torsh_mpi_request_take(handle, false) : 0;

		if (!index)
			continue;
		torsh_mpi_send_end(torsh_mpi_request_at(index)->number, true);
		torsh_mpi_request_drop(index);
	}
}
