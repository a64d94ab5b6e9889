/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/nccl/nccl_calls.h"

#include <string.h>

#include "agent/producer/label.h"

static uint32_t label(const char *text)
{
	return text ? torsh_label(text, strlen(text)) : 0;
}

/* ---- Numbers of interface 1, as names of the others ------------------------------------------ */

#define NAME_OF(number, ...)                              \
	static const char *const names[] = {__VA_ARGS__}; \
                                                          \
	return number < sizeof(names) / sizeof(*names) ? names[number] : "?"

static const char *function_name(uint8_t number)
{
	NAME_OF(number, "Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce",
		"SendRecv", "Send", "Recv");
}

static const char *algorithm_name(uint8_t number)
{
	NAME_OF(number, "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE",
		"PAT");
}

static const char *protocol_name(uint8_t number)
{
	NAME_OF(number, "LL", "LL128", "SIMPLE");
}

static const char *datatype_name(uint8_t number)
{
	NAME_OF(number, "ncclInt8", "ncclUint8", "ncclInt32", "ncclUint32", "ncclInt64",
		"ncclUint64", "ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16",
		"ncclFloat8e4m3", "ncclFloat8e5m2");
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* The bits of an element are the first number in its type's name; 0: there is none. */
static uint64_t element_bytes(const char *datatype)
{
	uint64_t bits = 0;

	datatype += strcspn(datatype, "0123456789");
	for (; *datatype >= '0' && *datatype <= '9' && bits < 1000; datatype++)
		bits = bits * 10 + (uint64_t)(*datatype - '0');
	return bits / 8;
}

static void put_elements(struct event_nccl_call *call, const char *function, const char *datatype,
			 size_t count)
{
	uint64_t bytes = datatype ? element_bytes(datatype) : 0;

	call->function = label(function);
	call->datatype = label(datatype);
	call->count = count;
	if (!bytes || __builtin_mul_overflow(bytes, count, &call->bytes))
		call->bytes = UINT64_MAX;
}

#define PUT_COLLECTIVE(of)               \
	call->sequence = (of)->sequence; \
	call->root = (of)->root;         \
	call->channels = (of)->channels; \
	call->warps = (of)->warps

#define PUT_NAMES(of)                                                    \
	put_elements(call, (of)->function, (of)->datatype, (of)->count); \
	call->algorithm = label((of)->algorithm);                        \
	call->protocol = label((of)->protocol)

#define NAMED(of) ((struct nccl_named){(of)->communicator_name, (of)->communicator_hash})

static void put_by_call(const struct nccl_descriptor *from, struct event_nccl_call *call)
{
	call->sequence = from->call.sequence;
	call->root = from->call.root;
	call->stream = (uintptr_t)from->call.stream;
	put_elements(call, from->call.function, datatype_name(from->call.datatype),
		     from->call.count);
}

static void put_collective(struct nccl_begin *begin, struct event_nccl_call *call)
{
	const struct nccl_descriptor *from = begin->descriptor;

	switch (begin->version) {
	case NCCL_BY_CALLS:
		put_by_call(from, call);
		return;
	case 1:
		PUT_COLLECTIVE(&from->collective_1);
		put_elements(call, function_name(from->collective_1.function),
			     datatype_name(from->collective_1.datatype), from->collective_1.count);
		call->algorithm = label(algorithm_name(from->collective_1.algorithm));
		call->protocol = label(protocol_name(from->collective_1.protocol));
		begin->named = NAMED(&from->collective_1);
		return;
	case 2:
		PUT_COLLECTIVE(&from->collective_2);
		PUT_NAMES(&from->collective_2);
		begin->named = NAMED(&from->collective_2);
		return;
	case 3:
		PUT_COLLECTIVE(&from->collective_3);
		PUT_NAMES(&from->collective_3);
		begin->named = NAMED(&from->collective_3);
		return;
	default:
		PUT_COLLECTIVE(&from->collective_4);
		PUT_NAMES(&from->collective_4);
	}
}

static void put_message(struct nccl_begin *begin, struct event_nccl_call *call)
{
	const struct nccl_descriptor *from = begin->descriptor;

	switch (begin->version) {
	case NCCL_BY_CALLS:
		call->peer = (uint32_t)from->call.peer + 1;
		put_by_call(from, call);
		return;
	case 1:
		call->peer = (uint32_t)from->message_1.peer + 1;
		put_elements(call, function_name(from->message_1.function),
			     datatype_name(from->message_1.datatype), from->message_1.count);
		begin->named = NAMED(&from->message_1);
		return;
	case 2:
	case 3:
		call->peer = (uint32_t)from->message_2.peer + 1;
		put_elements(call, from->message_2.function, from->message_2.datatype,
			     from->message_2.count);
		begin->named = NAMED(&from->message_2);
		return;
	default:
		call->peer = (uint32_t)from->message_4.peer + 1;
		call->channels = from->message_4.channels;
		put_elements(call, from->message_4.function, from->message_4.datatype,
			     from->message_4.count);
	}
}

static void put_ce_collective(const struct nccl_descriptor *from, struct event_nccl_call *call)
{
	call->sequence = from->ce_collective.sequence;
	call->root = from->ce_collective.root;
	call->stream = (uintptr_t)from->ce_collective.stream;
	put_elements(call, from->ce_collective.function, from->ce_collective.datatype,
		     from->ce_collective.count);
}

static bool put_call(struct nccl_begin *begin, struct event_nccl_call *call)
{
	const struct nccl_descriptor *from = begin->descriptor;

	*call = (struct event_nccl_call){.number = begin->number,
					 .parent = begin->parent,
					 .communicator = begin->communicator,
					 .sequence = COLLECTIVE_NO_SEQUENCE};
	switch (nccl_type_of(begin->version, from)) {
	case NCCL_TYPE_COLLECTIVE:
		call->kind = NCCL_COLLECTIVE;
		put_collective(begin, call);
		return true;
	case NCCL_TYPE_MESSAGE:
		call->kind = NCCL_MESSAGE;
		put_message(begin, call);
		return true;
	case NCCL_TYPE_COLLECTIVE_API:
		call->kind = NCCL_COLLECTIVE_API;
		call->root = from->collective_api.root;
		call->stream = (uintptr_t)from->collective_api.stream;
		call->is_captured = from->collective_api.is_captured;
		put_elements(call, from->collective_api.function, from->collective_api.datatype,
			     from->collective_api.count);
		return true;
	case NCCL_TYPE_MESSAGE_API:
		call->kind = NCCL_MESSAGE_API;
		call->stream = (uintptr_t)from->message_api.stream;
		call->is_captured = from->message_api.is_captured;
		put_elements(call, from->message_api.function, from->message_api.datatype,
			     from->message_api.count);
		return true;
	case NCCL_TYPE_CE_COLLECTIVE:
		call->kind = NCCL_CE_COLLECTIVE;
		put_ce_collective(from, call);
		return true;
	default:
		return false;
	}
}

/* ---- Other work ------------------------------------------------------------------------------ */

static bool put_work(const struct nccl_begin *begin, struct event_nccl_work *work)
{
	const struct nccl_descriptor *from = begin->descriptor;

	*work = (struct event_nccl_work){.number = begin->number,
					 .parent = begin->parent,
					 .communicator = begin->communicator};
	switch (nccl_type_of(begin->version, from)) {
	case NCCL_TYPE_GROUP:
		work->kind = NCCL_GROUP;
		return true;
	case NCCL_TYPE_GROUP_API:
		work->kind = NCCL_GROUP_API;
		work->depth = (uint32_t)from->group_api.depth;
		work->is_captured = from->group_api.is_captured;
		return true;
	case NCCL_TYPE_LAUNCH:
		work->kind = NCCL_LAUNCH;
		work->stream = (uintptr_t)from->launch.stream;
		return true;
	case NCCL_TYPE_CE_SYNC:
		work->kind = NCCL_CE_SYNC;
		return true;
	case NCCL_TYPE_CE_BATCH:
		work->kind = NCCL_CE_BATCH;
		work->operations = (uint32_t)from->ce_batch.operations;
		work->bytes = from->ce_batch.bytes;
		return true;
	default:
		return false;
	}
}

static void put_network(const struct nccl_descriptor *from, struct event_nccl_transfer *transfer)
{
	const struct nccl_network_socket *socket = from->network.data;
	const struct nccl_network_ib *ib = from->network.data;

	transfer->type = (uint64_t)from->network.id;
	if (!from->network.data)
		return;
	if (from->network.id == (NCCL_NETWORK_IB | 1)) {
		transfer->device = (uint32_t)ib->device;
		transfer->queue = ib->queue;
		transfer->request = ib->request;
		transfer->opcode = ib->opcode;
		transfer->bytes = ib->bytes;
	} else if (from->network.id == (NCCL_NETWORK_SOCKET | 1)) {
		transfer->queue = socket->descriptor;
		transfer->opcode = socket->operation;
		transfer->bytes = socket->bytes;
	}
}

static bool put_transfer(const struct nccl_begin *begin, struct event_nccl_transfer *transfer)
{
	const struct nccl_descriptor *from = begin->descriptor;

	*transfer = (struct event_nccl_transfer){.number = begin->number,
						 .parent = begin->parent,
						 .communicator = begin->communicator,
						 .is_foreign = begin->is_foreign};
	switch (nccl_type_of(begin->version, from)) {
	case NCCL_TYPE_PROXY_OPERATION:
		transfer->kind = NCCL_PROXY_OPERATION;
		transfer->channel = from->proxy_operation.channel;
		transfer->peer = (uint32_t)from->proxy_operation.peer + 1;
		transfer->steps = (uint32_t)from->proxy_operation.steps;
		transfer->chunk_bytes = (uint32_t)from->proxy_operation.chunk_bytes;
		transfer->is_send = from->proxy_operation.is_send != 0;
		return true;
	case NCCL_TYPE_PROXY_STEP:
		transfer->kind = NCCL_PROXY_STEP;
		transfer->step = (uint32_t)from->proxy_step.step;
		return true;
	case NCCL_TYPE_NETWORK:
		transfer->kind = NCCL_NETWORK;
		put_network(from, transfer);
		return true;
	default:
		return false;
	}
}

bool torsh_nccl_describe(struct nccl_begin *begin, struct event *event)
{
	const struct nccl_descriptor *from = begin->descriptor;

	if (nccl_type_of(begin->version, from) == NCCL_TYPE_KERNEL_CHANNEL) {
		event->id = EVENT_NCCL_KERNEL;
		event->nccl_kernel = (struct event_nccl_kernel){
			.number = begin->number,
			.parent = begin->parent,
			.communicator = begin->communicator,
			.channel = from->kernel_channel.channel,
			.device_ns = begin->version < 4 ? 0 : from->kernel_channel.device_ns,
		};
		return true;
	}
	event->id = EVENT_NCCL_CALL;
	if (put_call(begin, &event->nccl_call))
		return true;
	event->id = EVENT_NCCL_WORK;
	if (put_work(begin, &event->nccl_work))
		return true;
	event->id = EVENT_NCCL_TRANSFER;
	return put_transfer(begin, &event->nccl_transfer);
}

void torsh_nccl_describe_state(uint32_t version, int number,
			       const union nccl_state_arguments *arguments,
			       struct event_nccl_state *state)
{
	bool is_step = (number >= NCCL_STATE_STEP_FIRST && number <= NCCL_STATE_STEP_LAST) ||
		       number == NCCL_STATE_PEER_WAIT;

	if (version < 4 && number >= NCCL_STATE_OPERATION_FIRST &&
	    number <= NCCL_STATE_OPERATION_LAST) {
		state->value = arguments->operation.bytes;
		state->steps = (uint32_t)arguments->operation.steps;
	} else if (version >= 4 && is_step) {
		state->value = arguments->step.bytes;
	} else if (version >= 4 && number == NCCL_STATE_KERNEL_STOP) {
		state->value = arguments->kernel_channel.device_ns;
	}
}
