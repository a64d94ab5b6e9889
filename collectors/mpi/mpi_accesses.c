/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Accesses to memory of other ranks, in windows, and to files. Of the former only this rank knows,
 * so that they have no key; of the latter those have one that all ranks take part in. What a write
 * or a put moves is by its arguments, what a read did by its status.
 */
#include "agent/wire/event.h"
#include "collectors/mpi/mpi_bytes.h"
#include "collectors/mpi/mpi_calls.h"
#include "collectors/mpi/mpi_events.h"
#include "collectors/mpi/mpi_requests.h"

static enum collective_kind kind_of(enum mpi_moves moves)
{
	switch (moves) {
	case MPI_PUT:
		return COLLECTIVE_PUT;
	case MPI_GET:
		return COLLECTIVE_GET;
	case MPI_UPDATE:
		return COLLECTIVE_UPDATE;
	case MPI_READ:
		return COLLECTIVE_READ;
	case MPI_WRITE:
		return COLLECTIVE_WRITE;
	default:
		return COLLECTIVE_SYNC;
	}
}

static uint64_t handle_of(const struct mpi_call_now *now)
{
	return torsh_mpi_object(now->arguments, now->call->at.comm, false,
				(enum mpi_object)now->call->at.object);
}

static void begin(struct mpi_hook *hook, const struct mpi_call_now *now)
{
	const struct mpi_layout *at = &now->call->at;
	struct mpi_comm *comm = torsh_mpi_comm_of(now);
	int peer = at->peer ? torsh_mpi_int(now->arguments, at->peer) : -1;
	struct event_collective begin = {
		.group = comm ? comm->number : 0,
		.kind = kind_of((enum mpi_moves)at->moves),
		.sequence = COLLECTIVE_NO_SEQUENCE,
		.peer = peer < 0 ? 0 : (uint32_t)peer + 1,
		.tag = COLLECTIVE_ANY_TAG,
	};

	if (at->is_all && comm)
		begin.sequence = atomic_fetch_add_explicit(&comm->n_calls, 1, memory_order_relaxed);
	if (at->peer && peer == torsh_mpi.no_process)
		return;
	hook->number = torsh_mpi_send_begin(&begin, now->call->name);
}

void torsh_mpi_access_begin(struct mpi_hook *hook, const struct mpi_call_now *now)
{
	const struct mpi_layout *at = &now->call->at;

	if (now->call->role == MPI_ACCESS)
		begin(hook, now);
	else
		hook->requests = torsh_mpi_request_take(handle_of(now), true);
	if (at->moves == MPI_READ && at->status)
		torsh_mpi_want_statuses(hook, now, 1);
	hook->begin_ns = torsh_mpi_now();
}

/* One element without a count. */
static struct mpi_bytes bytes_of(const struct mpi_call_now *now, uint8_t count, uint8_t type)
{
	int64_t bytes;

	if (count)
		return torsh_mpi_message_bytes(now->arguments, count, type);
	bytes = torsh_mpi_type_bytes(now->arguments, type);
	return (struct mpi_bytes){
		.is_known = bytes >= 0, .in = (uint64_t)bytes, .out = (uint64_t)bytes};
}

static void send_bytes(uint32_t number, const struct mpi_call_now *now)
{
	const struct mpi_layout *at = &now->call->at;
	enum mpi_moves moves = (enum mpi_moves)at->moves;
	struct mpi_bytes got = {.is_known = true}, given = got;
	bool is_both = moves == MPI_UPDATE;

	if (at->type)
		got = bytes_of(now, at->count, at->type);
	given = at->send_type ? bytes_of(now, at->send_count, at->send_type) : got;
	torsh_mpi_send_moved(&(struct event_collective_moved){
		.number = number,
		.has_bytes = got.is_known && given.is_known,
		.in_bytes = moves == MPI_PUT || moves == MPI_WRITE || is_both ? given.in : 0,
		.out_bytes = moves == MPI_GET || is_both ? got.out : 0,
	});
}

void torsh_mpi_access_read(uint32_t number, const void *status)
{
	struct mpi_received received = {0};

	if (status)
		received = torsh_mpi_status(status);
	torsh_mpi_send_moved(&(struct event_collective_moved){
		.number = number, .has_bytes = received.has_bytes, .out_bytes = received.bytes});
}

static void finish(uint32_t number, const struct mpi_hook *hook, const struct mpi_call_now *now)
{
	torsh_mpi_send_end(number, now->has_failed);
	torsh_mpi_send_wait(number, hook->begin_ns, torsh_mpi_now() - hook->begin_ns);
}

/* The second half ends what the first one began. */
static void end_half(struct mpi_hook *hook, const struct mpi_call_now *now)
{
	const struct mpi_request *request;

	if (!hook->requests)
		return;
	request = torsh_mpi_request_at(hook->requests);
	if (now->call->at.moves == MPI_READ && !now->has_failed)
		torsh_mpi_access_read(request->number, torsh_mpi_status_of(hook, now, 0));
	finish(request->number, hook, now);
	torsh_mpi_request_drop(hook->requests);
}

void torsh_mpi_access_end(struct mpi_hook *hook, const struct mpi_call_now *now)
{
	const struct mpi_layout *at = &now->call->at;
	bool is_read = at->moves == MPI_READ;
	const struct mpi_request request = {.number = hook->number, .is_read = is_read};
	uint64_t handle = 0;

	if (now->call->role == MPI_ACCESS_END)
		end_half(hook, now);
	if (!hook->number)
		return;
	if (!now->has_failed && !is_read)
		send_bytes(hook->number, now);
	if (!now->has_failed && at->request)
		handle = torsh_mpi_request(now->arguments, at->request, 0);
	if (handle && !torsh_mpi_is_complete(handle)) {
		torsh_mpi_request_put(handle, false, &request);
		return;
	}
	if (at->is_half && !now->has_failed) {
		torsh_mpi_request_put(handle_of(now), true, &request);
		return;
	}
	if (is_read && !now->has_failed && at->status)
		torsh_mpi_access_read(hook->number, torsh_mpi_status_of(hook, now, 0));
	if (at->request)
		torsh_mpi_send_end(hook->number, now->has_failed);
	else
		finish(hook->number, hook, now);
}
