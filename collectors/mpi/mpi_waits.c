/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls that wait for requests, or ask for them. A request is complete when its handle became the
 * null one; of a persistent one the call's other results say so. Each request that a call waited
 * for gets the whole wait: which of them was the last to come, MPI doesn't say.
 */
#include "collectors/mpi/mpi_calls.h"
#include "collectors/mpi/mpi_events.h"
#include "collectors/mpi/mpi_requests.h"

/* Chain the requests of the array that are in the table. */
static bool chain_requests(struct mpi_hook *hook, const struct mpi_call_now *now, uint32_t n)
{
	const struct mpi_layout *at = &now->call->at;
	bool has_receives = false;
	uint32_t *link = &hook->requests;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t handle = torsh_mpi_request(now->arguments, at->request, i);
		struct mpi_request *request;

		if (!handle || torsh_mpi_is_complete(handle))
			continue;
		*link = torsh_mpi_request_take(handle, false);
		if (!*link)
			continue;
		request = torsh_mpi_request_at(*link);
		request->at = i;
		request->next = 0;
		has_receives |= request->is_receive || request->is_read;
		link = &request->next;
	}
	return has_receives;
}

static uint32_t n_requests(const struct mpi_call_now *now)
{
	const struct mpi_layout *at = &now->call->at;
	int n = at->n_requests ? torsh_mpi_int(now->arguments, at->n_requests) : 1;

	return n > 0 ? (uint32_t)n : 0;
}

void torsh_mpi_waits_begin(struct mpi_hook *hook, const struct mpi_call_now *now)
{
	const struct mpi_layout *at = &now->call->at;
	uint32_t n = n_requests(now);

	if (now->call->role == MPI_FORGET)
		torsh_mpi_prepared_forget(torsh_mpi_request(now->arguments, at->request, 0));
	if (chain_requests(hook, now, n) && at->status)
		torsh_mpi_want_statuses(hook, now, at->has_statuses ? n : 1);
	if (hook->requests)
		hook->begin_ns = torsh_mpi_now();
}

/* Where the status of request i is: in the order of the indices, or of the requests. */
static const void *find_status(const struct mpi_hook *hook, const struct mpi_call_now *now,
			       uint32_t i)
{
	const struct mpi_layout *at = &now->call->at;
	const int *indices;
	int n, first;

	if (!at->has_statuses)
		return torsh_mpi_status_of(hook, now, 0);
	if (!at->indices)
		return torsh_mpi_status_of(hook, now, i);
	indices = (const int *)torsh_mpi_argument(now->arguments, at->indices);
	n = *(const int *)torsh_mpi_argument(now->arguments, at->n_done);
	first = torsh_mpi_is_fortran(now->arguments->form); /* Fortran counts from 1 */
	for (int k = 0; k < n; k++)
		if (indices[k] - first == (int)i)
			return torsh_mpi_status_of(hook, now, (uint32_t)k);
	return NULL;
}

/* Whether a persistent request is among those that the call found complete. */
static bool is_done(const struct mpi_call_now *now, uint32_t i)
{
	const struct mpi_layout *at = &now->call->at;
	int first = torsh_mpi_is_fortran(now->arguments->form), n;
	const int *indices;

	if (at->flag && !torsh_mpi_is_set(now->arguments, at->flag))
		return false;
	if (at->index)
		return *(const int *)torsh_mpi_argument(now->arguments, at->index) - first ==
		       (int)i;
	if (!at->indices)
		return true;
	indices = (const int *)torsh_mpi_argument(now->arguments, at->indices);
	n = *(const int *)torsh_mpi_argument(now->arguments, at->n_done);
	for (int k = 0; k < n; k++) {
		if (indices[k] - first == (int)i)
			return true;
	}
	return false;
}

static void complete(const struct mpi_hook *hook, const struct mpi_call_now *now,
		     const struct mpi_request *request)
{
	if (request->is_receive)
		torsh_mpi_message_received(
			request, now->has_failed ? NULL : find_status(hook, now, request->at));
	else if (request->is_read && !now->has_failed)
		torsh_mpi_access_read(request->number, find_status(hook, now, request->at));
	torsh_mpi_send_end(request->number, now->has_failed);
	if (now->call->role == MPI_WAIT)
		torsh_mpi_send_wait(request->number, hook->begin_ns,
				    torsh_mpi_now() - hook->begin_ns);
}

/*
 * A request that was freed ends unseen. One that is to be cancelled may end without a message, and
 * then the next ones have other numbers.
 */
static void forget(const struct mpi_call_now *now, const struct mpi_request *request)
{
	struct mpi_comm *comm;

	if (!request->is_receive || (now->call->role == MPI_FORGET && !request->is_uncertain))
		return;
	comm = request->comm ? torsh_mpi_comm_find(request->comm_handle) : NULL;
	if (comm && comm->number == request->comm)
		comm->is_lost = true;
}

void torsh_mpi_waits_end(struct mpi_hook *hook, const struct mpi_call_now *now)
{
	uint8_t position = now->call->at.request;

	for (uint32_t index = hook->requests, next; index; index = next) {
		struct mpi_request *request = torsh_mpi_request_at(index);
		uint64_t handle = torsh_mpi_request(now->arguments, position, request->at);

		next = request->next;
		if (now->call->role == MPI_FORGET || now->call->role == MPI_CANCEL) {
			forget(now, request);
		} else if (!handle || (request->is_persistent && is_done(now, request->at))) {
			complete(hook, now, request);
			handle = 0;
		}
		if (handle)
			torsh_mpi_request_return(index, handle);
		else
			torsh_mpi_request_drop(index);
	}
}
