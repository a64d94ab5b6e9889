/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages between two ranks. The n-th send to a rank with a tag is the n-th receive from it with
 * that tag, as MPI keeps their order: so both ends have the same key. A receive that would take
 * several ranks' or several tags' messages is counted when it is complete; those that begin
 * meanwhile may get its message, and are counted then, too, without a number of their own.
 */
#include "collectors/mpi/mpi_bytes.h"
#include "collectors/mpi/mpi_calls.h"
#include "collectors/mpi/mpi_events.h"
#include "collectors/mpi/mpi_requests.h"
#include "agent/producer/key_map.h"
#include "agent/wire/event.h"

enum direction { SENT, RECEIVED };

static uint64_t count_message(uint32_t comm, uint32_t peer, uint64_t tag, enum direction direction)
{
	if (!comm)
		return COLLECTIVE_NO_SEQUENCE;
	return torsh_mpi_count_call(torsh_key_map_mix(
		comm, torsh_key_map_mix((uint64_t)peer * 2 + (direction == RECEIVED), tag)));
}

static struct mpi_comm *comm_of(struct mpi_hook *hook, const struct mpi_call_now *now)
{
	struct mpi_comm *comm =
		torsh_mpi_comm_find(torsh_mpi_comm(now->arguments, now->call->at.comm, false));

	hook->comm = comm ? comm->number : 0;
	return comm;
}

static uint64_t tag_of(int tag)
{
	return tag == torsh_mpi.any_tag ? COLLECTIVE_ANY_TAG : (uint32_t)tag;
}

/* ---- what is sent ---------------------------------------------------------------------------- */

uint32_t torsh_mpi_send_counted(const struct mpi_comm *comm, const char *name, int peer, int tag)
{
	uint32_t group = comm ? comm->number : 0;
	struct event_collective begin = {
		.group = group,
		.kind = COLLECTIVE_SEND,
		.peer = peer < 0 ? 0 : (uint32_t)peer + 1,
		.tag = (uint32_t)tag,
	};

	if (peer == torsh_mpi.no_process)
		return 0;
	begin.sequence = count_message(group, begin.peer, begin.tag, SENT);
	return torsh_mpi_send_begin(&begin, name);
}

static void moved(uint32_t number, const struct mpi_bytes *bytes, enum direction direction)
{
	torsh_mpi_send_moved(&(struct event_collective_moved){
		.number = number,
		.has_bytes = bytes->is_known,
		.in_bytes = direction == SENT ? bytes->in : 0,
		.out_bytes = direction == RECEIVED ? bytes->out : 0,
	});
}

/* ---- what is received ------------------------------------------------------------------------ */

uint32_t torsh_mpi_receive_counted(struct mpi_hook *hook, struct mpi_comm *comm, const char *name,
				   int peer, int tag)
{
	struct event_collective begin = {
		.group = comm ? comm->number : 0,
		.kind = COLLECTIVE_RECEIVE,
		.sequence = COLLECTIVE_NO_SEQUENCE,
		.peer = peer < 0 ? 0 : (uint32_t)peer + 1,
		.tag = tag_of(tag),
	};
	bool is_any = peer == torsh_mpi.any_source || tag == torsh_mpi.any_tag;

	if (peer == torsh_mpi.no_process)
		return 0;
	if (comm && !comm->is_lost) {
		uint32_t n = atomic_load_explicit(&comm->n_uncertain, memory_order_relaxed);

		hook->is_uncertain = is_any || n;
		if (!hook->is_uncertain)
			begin.sequence =
				count_message(comm->number, begin.peer, begin.tag, RECEIVED);
	}
	if (hook->is_uncertain) {
		hook->is_alone =
			!atomic_fetch_add_explicit(&comm->n_uncertain, 1, memory_order_relaxed);
		hook->joined =
			atomic_fetch_add_explicit(&comm->n_joined, 1, memory_order_relaxed) + 1;
	}
	return torsh_mpi_send_begin(&begin, name);
}

/* The receive's communicator, if it still is the same one. */
static struct mpi_comm *comm_of_request(const struct mpi_request *request)
{
	struct mpi_comm *comm = request->comm ? torsh_mpi_comm_find(request->comm_handle) : NULL;

	return comm && comm->number == request->comm ? comm : NULL;
}

/* Count the message of an uncertain receive. Returns its number if that is certain. */
static uint64_t settle(struct mpi_comm *comm, const struct mpi_request *request,
		       const struct mpi_received *received)
{
	uint64_t sequence = COLLECTIVE_NO_SEQUENCE;
	bool is_alone =
		request->is_alone &&
		atomic_load_explicit(&comm->n_joined, memory_order_relaxed) == request->joined;

	if (received && received->source >= 0)
		sequence = count_message(comm->number, (uint32_t)received->source + 1,
					 (uint32_t)received->tag, RECEIVED);
	else
		comm->is_lost = true;
	atomic_fetch_sub_explicit(&comm->n_uncertain, 1, memory_order_relaxed);
	return is_alone ? sequence : COLLECTIVE_NO_SEQUENCE;
}

void torsh_mpi_message_received(const struct mpi_request *request, const void *status)
{
	struct mpi_received received = {0};
	struct mpi_comm *comm = comm_of_request(request);
	struct event_collective_moved end = {
		.number = request->number,
		.has_bytes = request->has_bytes,
		.out_bytes = request->bytes,
		.sequence = COLLECTIVE_NO_SEQUENCE,
	};

	if (status) {
		received = torsh_mpi_status(status);
		if (received.has_bytes && received.source >= 0) {
			end.has_bytes = true;
			end.out_bytes = received.bytes;
		}
	}
	if (request->is_uncertain) {
		if (comm)
			end.sequence = settle(comm, request, status ? &received : NULL);
		end.is_matched = status && received.source >= 0;
		end.peer = end.is_matched ? (uint32_t)received.source + 1 : 0;
		end.tag = (uint32_t)received.tag;
	}
	torsh_mpi_send_moved(&end);
}

/* ---- messages that a probe took -------------------------------------------------------------- */

static void end_take(struct mpi_hook *hook, const struct mpi_call_now *now)
{
	const struct mpi_layout *at = &now->call->at;
	struct mpi_comm *comm = comm_of(hook, now);
	struct mpi_request taken = {.comm = hook->comm, .sequence = COLLECTIVE_NO_SEQUENCE};
	const void *status = torsh_mpi_status_of(hook, now, 0);
	struct mpi_received received;
	uint64_t message;

	if (now->has_failed || !status || (at->flag && !torsh_mpi_is_set(now->arguments, at->flag)))
		return;
	message = torsh_mpi_message(now->arguments, at->message);
	if (!message)
		return;
	received = torsh_mpi_status(status);
	taken.peer = (uint32_t)received.source + 1;
	taken.tag = (uint32_t)received.tag;
	if (comm && !comm->is_lost) {
		bool is_certain = !atomic_load_explicit(&comm->n_uncertain, memory_order_relaxed);
		uint64_t sequence = count_message(comm->number, taken.peer, taken.tag, RECEIVED);

		if (is_certain)
			taken.sequence = sequence;
	}
	taken.begin_ns = hook->begin_ns;
	taken.duration_ns = at->flag ? 0 : torsh_mpi_now() - hook->begin_ns;
	torsh_mpi_request_put(message, true, &taken);
}

/* The time of the probe belongs to the receive: that is where it waited for the message. */
static void begin_taken(struct mpi_hook *hook, const struct mpi_call_now *now)
{
	uint64_t message = torsh_mpi_message(now->arguments, now->call->at.message);
	uint32_t index = message ? torsh_mpi_request_take(message, true) : 0;
	const struct mpi_request *taken;

	if (!index)
		return;
	taken = torsh_mpi_request_at(index);
	hook->received =
		torsh_mpi_send_begin(&(struct event_collective){.group = taken->comm,
								.kind = COLLECTIVE_RECEIVE,
								.sequence = taken->sequence,
								.peer = taken->peer,
								.tag = taken->tag},
				     now->call->name);
	hook->probe_begin_ns = taken->begin_ns;
	hook->probe_ns = taken->duration_ns;
	torsh_mpi_request_drop(index);
}

/* ---- calls ----------------------------------------------------------------------------------- */

void torsh_mpi_messages_begin(struct mpi_hook *hook, const struct mpi_call_now *now)
{
	const struct mpi_layout *at = &now->call->at;
	const struct mpi_arguments *arguments = now->arguments;
	enum mpi_role role = (enum mpi_role)now->call->role;
	struct mpi_comm *comm;

	if (at->status)
		torsh_mpi_want_statuses(hook, now, 1);
	if (role == MPI_RECEIVE_TAKEN) {
		begin_taken(hook, now);
	} else if (role != MPI_TAKE) {
		comm = comm_of(hook, now);
		if (role == MPI_SEND)
			hook->number = torsh_mpi_send_counted(comm, now->call->name,
							      torsh_mpi_int(arguments, at->peer),
							      torsh_mpi_int(arguments, at->tag));
		if (role == MPI_EXCHANGE)
			hook->number = torsh_mpi_send_counted(
				comm, now->call->name, torsh_mpi_int(arguments, at->send_peer),
				torsh_mpi_int(arguments, at->send_tag));
		if (role != MPI_SEND)
			hook->received = torsh_mpi_receive_counted(
				hook, comm, now->call->name, torsh_mpi_int(arguments, at->peer),
				torsh_mpi_int(arguments, at->tag));
	}
	hook->begin_ns = torsh_mpi_now();
}

/* What is kept of a message until it is complete. */
static struct mpi_request request_of(const struct mpi_hook *hook, const struct mpi_call_now *now,
				     const struct mpi_bytes *bytes, bool is_receive)
{
	return (struct mpi_request){
		.number = is_receive ? hook->received : hook->number,
		.comm = hook->comm,
		.comm_handle =
			hook->comm ? torsh_mpi_comm(now->arguments, now->call->at.comm, false) : 0,
		.joined = hook->joined,
		.is_receive = is_receive,
		.is_uncertain = hook->is_uncertain,
		.is_alone = hook->is_alone,
		.has_bytes = bytes->is_known,
		.bytes = bytes->in,
	};
}

static void finish(uint32_t number, const struct mpi_hook *hook, bool has_failed)
{
	torsh_mpi_send_end(number, has_failed);
	torsh_mpi_send_wait(number, hook->begin_ns, torsh_mpi_now() - hook->begin_ns);
}

static void end_receive(struct mpi_hook *hook, const struct mpi_call_now *now)
{
	const struct mpi_layout *at = &now->call->at;
	struct mpi_bytes bytes = {0};
	struct mpi_request request;
	uint64_t handle = 0;

	if (!now->has_failed)
		bytes = torsh_mpi_message_bytes(now->arguments, at->count, at->type);
	request = request_of(hook, now, &bytes, true);
	if (at->request && !now->has_failed)
		handle = torsh_mpi_request(now->arguments, at->request, 0);
	moved(hook->received, &bytes, RECEIVED);
	if (hook->probe_ns)
		torsh_mpi_send_wait(hook->received, hook->probe_begin_ns, hook->probe_ns);
	if (handle) {
		torsh_mpi_request_put(handle, false, &request);
		return;
	}
	torsh_mpi_message_received(&request, now->has_failed || at->request
						     ? NULL
						     : torsh_mpi_status_of(hook, now, 0));
	finish(hook->received, hook, now->has_failed);
}

static void end_send(struct mpi_hook *hook, const struct mpi_call_now *now, uint8_t count,
		     uint8_t type)
{
	const struct mpi_layout *at = &now->call->at;
	struct mpi_bytes bytes = {0};
	struct mpi_request request;
	uint64_t handle = 0;

	if (!now->has_failed) {
		bytes = torsh_mpi_message_bytes(now->arguments, count, type);
		moved(hook->number, &bytes, SENT);
		if (at->request)
			handle = torsh_mpi_request(now->arguments, at->request, 0);
	}
	if (!handle || torsh_mpi_is_complete(handle)) {
		torsh_mpi_send_end(hook->number, now->has_failed);
		if (!at->request)
			torsh_mpi_send_wait(hook->number, hook->begin_ns,
					    torsh_mpi_now() - hook->begin_ns);
		return;
	}
	request = request_of(hook, now, &bytes, false);
	torsh_mpi_request_put(handle, false, &request);
}

void torsh_mpi_messages_end(struct mpi_hook *hook, const struct mpi_call_now *now)
{
	const struct mpi_layout *at = &now->call->at;

	if (now->call->role == MPI_TAKE) {
		end_take(hook, now);
		return;
	}
	if (hook->number)
		end_send(hook, now, at->send_count ? at->send_count : at->count,
			 at->send_type ? at->send_type : at->type);
	if (hook->received || hook->is_uncertain)
		end_receive(hook, now);
}
