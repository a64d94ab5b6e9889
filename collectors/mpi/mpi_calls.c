/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls of MPI, which shim/mpi/mpi_wrappers.c reports. Every call is counted, recorded or not,
 * because the other ranks may record it. Nothing here communicates; what the library is asked for
 * the agent is asked after a call that has succeeded, so that an argument that isn't valid fails in
 * the program's own call.
 */
#include "collectors/mpi/mpi_calls.h"

#include <errno.h>
#include <string.h>

#include "agent/wire/event.h"
#include "collectors/mpi/mpi_bytes.h"
#include "collectors/mpi/mpi_events.h"
#include "collectors/mpi/mpi_requests.h"

/*
 * The hook of the function that the program called, on this thread: functions that the library
 * calls within it are at lower addresses. One that was left by an exception or a jump stays until a
 * call from further up.
 */
static _Thread_local uintptr_t outermost;

/* ---- collectives ----------------------------------------------------------------------------- */

static void begin_collective(struct mpi_hook *hook, const struct mpi_call_now *now)
{
	struct mpi_comm *comm = torsh_mpi_comm_of(now);
	int root = now->call->at.peer ? torsh_mpi_int(now->arguments, now->call->at.peer) : -1;
	struct event_collective begin = {
		.kind = COLLECTIVE_OF_ALL,
		.sequence = COLLECTIVE_NO_SEQUENCE,
		.peer = root < 0 ? 0 : (uint32_t)root + 1,
	};

	if (comm) {
		hook->comm = begin.group = comm->number;
		begin.sequence = atomic_fetch_add_explicit(&comm->n_calls, 1, memory_order_relaxed);
	}
	hook->number = torsh_mpi_send_begin(&begin, now->call->name);
	hook->begin_ns = torsh_mpi_now();
}

static void send_bytes(const struct mpi_hook *hook, const struct mpi_call_now *now)
{
	const struct mpi_comm *comm = hook->comm ? torsh_mpi_comm_of(now) : NULL;
	struct mpi_bytes bytes;

	if (!comm)
		return;
	bytes = torsh_mpi_bytes(now->arguments, &now->call->at, comm->rank, comm->size);
	torsh_mpi_send_moved(&(struct event_collective_moved){.number = hook->number,
							      .has_bytes = bytes.is_known,
							      .in_bytes = bytes.in,
							      .out_bytes = bytes.out});
}

static void end_collective(struct mpi_hook *hook, const struct mpi_call_now *now)
{
	uint8_t position = now->call->at.request;
	uint64_t handle = 0;

	if (!hook->number)
		return;
	if (!now->has_failed)
		send_bytes(hook, now);
	if (position && !now->has_failed)
		handle = torsh_mpi_request(now->arguments, position, 0);
	if (handle && !torsh_mpi_is_complete(handle)) {
		torsh_mpi_request_put(handle, false, &(struct mpi_request){.number = hook->number});
		return;
	}
	torsh_mpi_send_end(hook->number, now->has_failed);
	if (!position)
		torsh_mpi_send_wait(hook->number, hook->begin_ns, torsh_mpi_now() - hook->begin_ns);
}

/* ---- communicators --------------------------------------------------------------------------- */

/* Only the members of a group take part in MPI_Comm_create_group: it has a tag instead. */
static void begin_make(struct mpi_hook *hook, const struct mpi_call_now *now)
{
	struct mpi_comm *comm = torsh_mpi_comm_of(now);

	if (!comm)
		return;
	hook->comm = comm->number;
	if (!now->call->at.tag)
		hook->order = atomic_fetch_add_explicit(&comm->n_made, 1, memory_order_relaxed);
}

static void end_make(const struct mpi_hook *hook, const struct mpi_call_now *now)
{
	const struct mpi_layout *at = &now->call->at;
	int tag = at->tag ? torsh_mpi_int(now->arguments, at->tag) : 0;
	const struct mpi_origin origin = {
		.parent = hook->comm ? torsh_mpi_comm_of(now) : NULL,
		.order = hook->order,
		.tag = at->tag ? &tag : NULL,
		.is_part = at->is_part,
		.function = now->call->name,
	};

	if (!now->has_failed)
		torsh_mpi_comm_add(torsh_mpi_object(now->arguments, at->made, true,
						    (enum mpi_object)at->object),
				   &origin);
}

/* ---- every call ------------------------------------------------------------------------------ */

static void begin_call(struct mpi_hook *hook, const struct mpi_call_now *now)
{
	switch ((enum mpi_role)now->call->role) {
	case MPI_COLLECTIVE:
		begin_collective(hook, now);
		break;
	case MPI_SEND:
	case MPI_RECEIVE:
	case MPI_EXCHANGE:
	case MPI_TAKE:
	case MPI_RECEIVE_TAKEN:
		torsh_mpi_messages_begin(hook, now);
		break;
	case MPI_WAIT:
	case MPI_TEST:
	case MPI_FORGET:
	case MPI_CANCEL:
		torsh_mpi_waits_begin(hook, now);
		break;
	case MPI_MAKE:
		begin_make(hook, now);
		break;
	case MPI_FREE:
		torsh_mpi_comm_forget(torsh_mpi_object(now->arguments, now->call->at.comm, true,
						       (enum mpi_object)now->call->at.object));
		break;
	case MPI_START:
		torsh_mpi_start(hook, now);
		break;
	case MPI_ACCESS:
	case MPI_ACCESS_END:
		torsh_mpi_access_begin(hook, now);
		break;
	case MPI_FINALIZE:
		torsh_mpi_comms_end();
		break;
	case MPI_INIT:
	case MPI_PREPARE:
		break;
	}
}

static void end_call(struct mpi_hook *hook, const struct mpi_call_now *now)
{
	switch ((enum mpi_role)now->call->role) {
	case MPI_INIT:
		torsh_mpi_comm_start();
		break;
	case MPI_COLLECTIVE:
		end_collective(hook, now);
		break;
	case MPI_SEND:
	case MPI_RECEIVE:
	case MPI_EXCHANGE:
	case MPI_TAKE:
	case MPI_RECEIVE_TAKEN:
		torsh_mpi_messages_end(hook, now);
		break;
	case MPI_WAIT:
	case MPI_TEST:
	case MPI_FORGET:
	case MPI_CANCEL:
		torsh_mpi_waits_end(hook, now);
		break;
	case MPI_MAKE:
		end_make(hook, now);
		break;
	case MPI_PREPARE:
		torsh_mpi_prepared(now);
		break;
	case MPI_START:
		torsh_mpi_started(now);
		break;
	case MPI_ACCESS:
	case MPI_ACCESS_END:
		torsh_mpi_access_end(hook, now);
		break;
	case MPI_FREE:
	case MPI_FINALIZE:
		break;
	}
}

void torsh_mpi_begins(struct mpi_hook *hook, int number, const struct mpi_arguments *arguments)
{
	const struct mpi_call_now now = {.call = &torsh_mpi_calls[number], .arguments = arguments};
	int saved = errno;

	hook->is_inner = outermost && (uintptr_t)hook < outermost;
	if (hook->is_inner)
		return;
	outermost = (uintptr_t)hook;
	hook->has_statuses = hook->is_uncertain = hook->is_alone = false;
	hook->comm = hook->number = hook->received = hook->requests = hook->joined = 0;
	hook->begin_ns = hook->order = hook->probe_ns = 0;
	begin_call(hook, &now);
	errno = saved;
}

void torsh_mpi_ends(struct mpi_hook *hook, int number, const struct mpi_arguments *arguments,
		    uintptr_t result)
{
	struct mpi_call_now now = {.call = &torsh_mpi_calls[number], .arguments = arguments};
	int saved = errno;

	if (hook->is_inner)
		return;
	outermost = 0;
	/* MPI_Init has fewer arguments in Fortran: whether it succeeded is asked otherwise. */
	now.has_failed = now.call->role != MPI_INIT && torsh_mpi_error(arguments, result) != 0;
	end_call(hook, &now);
	errno = saved;
}
