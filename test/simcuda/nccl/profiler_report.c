/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Each event in the form of the plugin's interface, and in the log. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "test/simcuda/engine/log/log.h"
#include "test/simcuda/nccl/profiler.h"

static _Atomic unsigned last_id;

static uint8_t number_among(const char *const *words, const char *word)
{
	uint8_t i = 0;

	while (words[i] && strcmp(words[i], word))
		i++;
	return i;
}

static uint8_t function_number(const char *name)
{
	static const char *const names[] = {"Broadcast",     "Reduce",	  "AllGather",
					    "ReduceScatter", "AllReduce", "SendRecv",
					    "Send",	     "Recv",	  NULL};

	return number_among(names, name);
}

static uint8_t type_number(const char *name)
{
	uint8_t i = 0;

	while (i < 10 && strcmp(profiler_type_name((ncclDataType_t)i), name))
		i++;
	return i;
}

static uint8_t algorithm_number(const char *name)
{
	static const char *const names[] = {"TREE", "RING", NULL};

	return number_among(names, name);
}

static uint8_t protocol_number(const char *name)
{
	static const char *const names[] = {"LL", "LL128", "SIMPLE", NULL};

	return number_among(names, name);
}

#define PUT_HEAD()                            \
	to->type = (uint8_t)event->type;      \
	to->parentObj = event->parent.handle; \
	to->rank = event->rank

#define PUT_PROXY_OP()                                                               \
	to->proxyOp.pid = getpid(), to->proxyOp.channelId = (uint8_t)event->channel, \
	to->proxyOp.peer = event->peer, to->proxyOp.nSteps = event->steps,           \
	to->proxyOp.chunkSize = event->chunk, to->proxyOp.isSend = event->is_send

#define PUT_BUFFERS(of)                                                     \
	(of).sendBuff = event->call->from, (of).recvBuff = event->call->to, \
	(of).count = event->count, (of).root = event->call->root

static void put_v1(const struct profiler *profiler, const struct profiled_event *event,
		   struct descriptor_v1 *to)
{
	PUT_HEAD();
	switch (event->type) {
	case PROFILE_COLL:
		to->parentObj = event->group.handle;
		to->coll.name = profiler->name;
		to->coll.commHash = profiler->hash;
		to->coll.seqNumber = event->sequence;
		to->coll.func = function_number(event->call->function);
		PUT_BUFFERS(to->coll);
		to->coll.datatype = type_number(event->datatype);
		to->coll.trafficBytes = 12345;
		to->coll.nMaxChannels = (uint8_t)event->channels;
		to->coll.nWarps = (uint8_t)event->warps;
		to->coll.algo = algorithm_number(event->algorithm);
		to->coll.proto = protocol_number(event->protocol);
		break;
	case PROFILE_P2P:
		to->parentObj = event->group.handle;
		to->p2p.name = profiler->name;
		to->p2p.commHash = profiler->hash;
		to->p2p.func = function_number(event->call->function);
		to->p2p.buff = event->call->to;
		to->p2p.datatype = type_number(event->datatype);
		to->p2p.count = event->count;
		to->p2p.peer = event->peer;
		break;
	case PROFILE_PROXY_OP:
		PUT_PROXY_OP();
		break;
	case PROFILE_PROXY_STEP:
		to->proxyStep.step = event->step;
		break;
	}
}

#define PUT_CALLS_OF_2_AND_3()                                    \
	case PROFILE_COLL:                                        \
		to->parentObj = event->group.handle;              \
		to->coll.name = profiler->name;                   \
		to->coll.commHash = profiler->hash;               \
		to->coll.seqNumber = event->sequence;             \
		to->coll.func = event->call->function;            \
		PUT_BUFFERS(to->coll);                            \
		to->coll.datatype = event->datatype;              \
		to->coll.nMaxChannels = (uint8_t)event->channels; \
		to->coll.nWarps = (uint8_t)event->warps;          \
		to->coll.algo = event->algorithm;                 \
		to->coll.proto = event->protocol;                 \
		break;                                            \
	case PROFILE_P2P:                                         \
		to->parentObj = event->group.handle;              \
		to->p2p.name = profiler->name;                    \
		to->p2p.commHash = profiler->hash;                \
		to->p2p.func = event->call->function;             \
		to->p2p.buff = event->call->to;                   \
		to->p2p.datatype = event->datatype;               \
		to->p2p.count = event->count;                     \
		to->p2p.peer = event->peer;                       \
		break;                                            \
	case PROFILE_PROXY_OP:                                    \
		PUT_PROXY_OP();                                   \
		break;                                            \
	case PROFILE_PROXY_STEP:                                  \
		to->proxyStep.step = event->step;                 \
		break

static void put_v2(const struct profiler *profiler, const struct profiled_event *event,
		   struct descriptor_v2 *to)
{
	PUT_HEAD();
	switch (event->type) {
		PUT_CALLS_OF_2_AND_3();
	}
	if (event->type == PROFILE_COLL)
		to->coll.trafficBytes = 12345;
}

static void put_v3(const struct profiler *profiler, const struct profiled_event *event,
		   struct descriptor_v3 *to)
{
	PUT_HEAD();
	switch (event->type) {
		PUT_CALLS_OF_2_AND_3();
	case PROFILE_KERNEL_CH:
		to->kernelCh.channelId = (uint8_t)event->channel;
		break;
	case PROFILE_NET:
		to->netPlugin.id = SOCKET_EVENT;
		to->netPlugin.data = event->socket;
		break;
	}
}

#define PUT_CALLS_FROM_4()                                        \
	case PROFILE_COLL:                                        \
		to->coll.seqNumber = event->sequence;             \
		to->coll.func = event->call->function;            \
		PUT_BUFFERS(to->coll);                            \
		to->coll.datatype = event->datatype;              \
		to->coll.nChannels = (uint8_t)event->channels;    \
		to->coll.nWarps = (uint8_t)event->warps;          \
		to->coll.algo = event->algorithm;                 \
		to->coll.proto = event->protocol;                 \
		break;                                            \
	case PROFILE_P2P:                                         \
		to->p2p.func = event->call->function;             \
		to->p2p.buff = event->call->to;                   \
		to->p2p.datatype = event->datatype;               \
		to->p2p.count = event->count;                     \
		to->p2p.peer = event->peer;                       \
		to->p2p.nChannels = (uint8_t)event->channels;     \
		break;                                            \
	case PROFILE_PROXY_OP:                                    \
		PUT_PROXY_OP();                                   \
		break;                                            \
	case PROFILE_PROXY_STEP:                                  \
		to->proxyStep.step = event->step;                 \
		break;                                            \
	case PROFILE_KERNEL_CH:                                   \
		to->kernelCh.channelId = (uint8_t)event->channel; \
		to->kernelCh.pTimer = event->timer;               \
		break;                                            \
	case PROFILE_NET:                                         \
		to->netPlugin.id = SOCKET_EVENT;                  \
		to->netPlugin.data = event->socket;               \
		break

static void put_v4(const struct profiled_event *event, struct descriptor_v4 *to)
{
	PUT_HEAD();
	if (event->type == PROFILE_COLL || event->type == PROFILE_P2P)
		to->parentObj = event->group.handle;
	switch (event->type) {
		PUT_CALLS_FROM_4();
	}
}

static void put_api(const struct profiled_event *event, struct descriptor_v5 *to)
{
	const struct profiled_call *call = event->call;

	switch (event->type) {
	case PROFILE_GROUP_API:
		to->groupApi.groupDepth = event->depth;
		break;
	case PROFILE_COLL_API:
		to->collApi.func = call->function;
		to->collApi.count = event->count;
		to->collApi.datatype = event->datatype;
		to->collApi.root = call->root;
		to->collApi.stream = call->stream;
		break;
	case PROFILE_P2P_API:
		to->p2pApi.func = call->function;
		to->p2pApi.count = event->count;
		to->p2pApi.datatype = event->datatype;
		to->p2pApi.stream = call->stream;
		break;
	case PROFILE_KERNEL_LAUNCH:
		to->kernelLaunch.stream = call->stream;
		break;
	case PROFILE_CE_COLL:
		to->ceColl.seqNumber = event->sequence;
		to->ceColl.func = call->function;
		PUT_BUFFERS(to->ceColl);
		to->ceColl.datatype = event->datatype;
		to->ceColl.syncStrategy = "UC";
		to->ceColl.stream = call->stream;
		break;
	case PROFILE_CE_BATCH:
		to->ceCollBatch.numOps = event->operations;
		to->ceCollBatch.totalBytes = event->bytes;
		break;
	}
}

static void put_v5(const struct profiled_event *event, struct descriptor_v5 *to)
{
	PUT_HEAD();
	to->type = (uint64_t)event->type;
	put_api(event, to);
	switch (event->type) {
		PUT_CALLS_FROM_4();
	}
	if (event->type == PROFILE_COLL)
		to->coll.parentGroup = event->group.handle;
	if (event->type == PROFILE_P2P)
		to->p2p.parentGroup = event->group.handle;
}

static bool is_call(int type)
{
	return type &
	       (PROFILE_COLL | PROFILE_P2P | PROFILE_COLL_API | PROFILE_P2P_API | PROFILE_CE_COLL);
}

static void log_start(const struct profiler *profiler, const struct profiled_event *event,
		      unsigned id, bool has_handle)
{
	bool by_group = profiler_version < 5 && event->type & (PROFILE_COLL | PROFILE_P2P);
	char call[512] = "";

	if (is_call(event->type))
		snprintf(call, sizeof(call),
			 ",\"function\":\"%s\",\"datatype\":\"%s\",\"count\":%zu,\"root\":%d,"
			 "\"peer\":%d,\"stream\":%llu",
			 event->call->function, event->datatype, event->count, event->call->root,
			 event->call->peer, (unsigned long long)(uintptr_t)event->call->stream);
	sim_log("{\"kind\":\"nccl\",\"what\":\"start\",\"id\":%u,\"parent\":%u,\"communicator\":%u,"
		"\"type\":%d,\"handle\":%d,\"thread\":%d,\"sequence\":%llu,\"channels\":%d,"
		"\"warps\":%d,\"algorithm\":\"%s\",\"protocol\":\"%s\",\"channel\":%d,\"to\":%d,"
		"\"steps\":%d,\"chunk\":%d,\"is_send\":%d,\"step\":%d,\"depth\":%d,\"timer\":%llu,"
		"\"operations\":%d,\"bytes\":%zu%s}",
		id, by_group ? event->group.id : event->parent.id, profiler->number, event->type,
		has_handle, gettid(), (unsigned long long)event->sequence, event->channels,
		event->warps, event->algorithm ? event->algorithm : "",
		event->protocol ? event->protocol : "", event->channel, event->peer, event->steps,
		event->chunk, event->is_send, event->step, event->depth,
		(unsigned long long)event->timer, event->operations, event->bytes, call);
}

struct profiled profiler_start(struct profiler *profiler, const struct profiled_event *event)
{
	union {
		struct descriptor_v1 v1;
		struct descriptor_v2 v2;
		struct descriptor_v3 v3;
		struct descriptor_v4 v4;
		struct descriptor_v5 v5;
	} descriptor;
	struct profiled started = {NULL, ++last_id};

	memset(&descriptor, 0, sizeof(descriptor));
	switch (profiler_version) {
	case 1:
		put_v1(profiler, event, &descriptor.v1);
		break;
	case 2:
		put_v2(profiler, event, &descriptor.v2);
		break;
	case 3:
		put_v3(profiler, event, &descriptor.v3);
		break;
	case 4:
		put_v4(event, &descriptor.v4);
		break;
	default:
		put_v5(event, &descriptor.v5);
	}
	profiler_plugin->startEvent(profiler->context, &started.handle, &descriptor);
	log_start(profiler, event, started.id, started.handle != NULL);
	return started;
}

void profiler_state(struct profiled event, int state, uint64_t value, int steps)
{
	union state_arguments_v1 old = {.proxyOp = {value, steps}};
	union state_arguments_v4 arguments = {.kernelCh = {value}};

	if (!event.handle)
		return;
	profiler_plugin->recordEventState(event.handle, state,
					  state >= STATE_GROUP_START_STOP ? NULL
					  : profiler_version < 4	  ? (void *)&old
									  : (void *)&arguments);
	sim_log("{\"kind\":\"nccl\",\"what\":\"state\",\"id\":%u,\"state\":%d,\"value\":%llu,"
		"\"steps\":%d}",
		event.id, state, (unsigned long long)value, profiler_version < 4 ? steps : 0);
}

void profiler_stop(struct profiled *event)
{
	if (!event->handle)
		return;
	profiler_plugin->stopEvent(event->handle);
	sim_log("{\"kind\":\"nccl\",\"what\":\"stop\",\"id\":%u,\"thread\":%d}", event->id,
		gettid());
}
