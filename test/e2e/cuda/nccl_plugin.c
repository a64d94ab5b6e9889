/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A profiler plugin of NCCL's as others write them, with the interfaces that HAS_V1 to HAS_V6 name.
 * It logs what it receives to PLUGIN_LOG, threads apart by their order, its own handles as numbers;
 * what is no handle or context of its own is logged as BAD. It wants the events of PLUGIN_MASK, and
 * from its PLUGIN_LATER_AT-th event on those of PLUGIN_LATER; with PLUGIN_FAILS it doesn't start.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test/simcuda/nccl/profiler_abi.h"

#define MAGIC 0x6e63636cu

struct object {
	unsigned magic, thread, number;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *file;
static int *mask_of_nccl;
static unsigned n_threads, n_events;
static _Thread_local unsigned thread, n_objects;

static void begin_line(const char *what)
{
	pthread_mutex_lock(&lock);
	if (!file)
		file = fopen(getenv("PLUGIN_LOG"), "a");
	if (!thread)
		thread = ++n_threads;
	fprintf(file, "%u %s", thread, what);
}

static void end_line(void)
{
	fputc('\n', file);
	fflush(file);
	pthread_mutex_unlock(&lock);
}

static struct object *make(void)
{
	struct object *object = malloc(sizeof(*object));

	*object = (struct object){MAGIC, thread, ++n_objects};
	return object;
}

static void put_object(const char *what, const void *pointer)
{
	const struct object *object = pointer;

	if (!object)
		fprintf(file, " %s none", what);
	else if ((uintptr_t)object & 7 || (uintptr_t)object < 65536 || object->magic != MAGIC)
		fprintf(file, " %s BAD", what);
	else
		fprintf(file, " %s %u.%u", what, object->thread, object->number);
}

static int wanted(const char *name)
{
	return getenv(name) ? atoi(getenv(name)) : 0;
}

static int begin(void **context, int *mask)
{
	if (wanted("PLUGIN_FAILS"))
		return 2;
	if (!mask_of_nccl)
		*mask = wanted("PLUGIN_MASK");
	mask_of_nccl = mask;
	*context = make();
	return 0;
}

#define MAYBE __attribute__((unused))

MAYBE static int init_1(void **context, int *mask)
{
	int result;

	begin_line("init");
	result = begin(context, mask);
	end_line();
	return result;
}

MAYBE static int init_4(void **context, int *mask, const char *name, uint64_t hash, int n_nodes,
			int n_ranks, int rank, void *log)
{
	int result;

	begin_line("init");
	result = begin(context, mask);
	fprintf(file, " %s %d %d %d %d %d", name ? name : "-", hash != 0, n_nodes, n_ranks, rank,
		log != NULL);
	end_line();
	return result;
}

MAYBE static int init_5(void **context, uint64_t hash, int *mask, const char *name, int n_nodes,
			int n_ranks, int rank, void *log)
{
	return init_4(context, mask, name, hash, n_nodes, n_ranks, rank, log);
}

#define PUT_CALL(call) fprintf(file, " %s %zu %s", (call).func, (call).count, (call).datatype)

static void put_fields_1(const struct descriptor_v1 *from)
{
	if (from->type == PROFILE_COLL)
		fprintf(file, " %u %zu %u %u %u %llu %zu %d", from->coll.func, from->coll.count,
			from->coll.datatype, from->coll.algo, from->coll.proto,
			(unsigned long long)from->coll.seqNumber, from->coll.trafficBytes,
			from->coll.root);
	else if (from->type == PROFILE_P2P)
		fprintf(file, " %u %zu %d", from->p2p.func, from->p2p.count, from->p2p.peer);
}

static void put_fields_2(const struct descriptor_v2 *from)
{
	if (from->type == PROFILE_COLL) {
		PUT_CALL(from->coll);
		fprintf(file, " %s %s %zu", from->coll.algo, from->coll.proto,
			from->coll.trafficBytes);
	} else if (from->type == PROFILE_P2P) {
		PUT_CALL(from->p2p);
	}
}

static void put_fields_3(const struct descriptor_v3 *from)
{
	if (from->type == PROFILE_COLL) {
		PUT_CALL(from->coll);
		fprintf(file, " %s %s", from->coll.algo, from->coll.proto);
	} else if (from->type == PROFILE_KERNEL_CH) {
		fprintf(file, " %u", from->kernelCh.channelId);
	}
}

static void put_fields_4(const struct descriptor_v4 *from)
{
	if (from->type == PROFILE_COLL) {
		PUT_CALL(from->coll);
		fprintf(file, " %s %s", from->coll.algo, from->coll.proto);
	} else if (from->type == PROFILE_PROXY_OP) {
		fprintf(file, " %d %u %d", from->proxyOp.pid == getpid(), from->proxyOp.channelId,
			from->proxyOp.peer);
	}
}

static void put_fields_5(const struct descriptor_v5 *from)
{
	if (from->type == PROFILE_COLL) {
		PUT_CALL(from->coll);
		put_object("group", from->coll.parentGroup);
	} else if (from->type == PROFILE_P2P) {
		PUT_CALL(from->p2p);
		put_object("group", from->p2p.parentGroup);
	} else if (from->type == PROFILE_COLL_API) {
		PUT_CALL(from->collApi);
	} else if (from->type == PROFILE_NET) {
		fprintf(file, " %zu", ((struct socket_event *)from->netPlugin.data)->sock.length);
	}
}

static void put_fields(unsigned version, const void *from)
{
	switch (version) {
	case 1:
		put_fields_1(from);
		break;
	case 2:
		put_fields_2(from);
		break;
	case 3:
		put_fields_3(from);
		break;
	case 4:
		put_fields_4(from);
		break;
	default:
		put_fields_5(from);
	}
}

static int start_event(unsigned version, void *context, void **handle, void *descriptor)
{
	const struct descriptor_v5 *wide = descriptor;
	uint64_t type = version < 5 ? *(uint8_t *)descriptor : wide->type;

	begin_line("start");
	fprintf(file, " %llu %d", (unsigned long long)type, wide->rank);
	put_object("context", context);
	put_object("parent", wide->parentObj);
	put_fields(version, descriptor);
	/* Of some it has nothing to say later. */
	if (type != PROFILE_KERNEL_LAUNCH)
		*handle = make();
	put_object("handle", *handle);
	if (++n_events == (unsigned)wanted("PLUGIN_LATER_AT"))
		__atomic_store_n(mask_of_nccl, wanted("PLUGIN_LATER"), __ATOMIC_RELAXED);
	end_line();
	return 0;
}

static int stop_event(void *handle)
{
	begin_line("stop");
	put_object("handle", handle);
	end_line();
	return 0;
}

static int record_state(void *handle, int state, void *arguments)
{
	begin_line("state");
	put_object("handle", handle);
	fprintf(file, " %d", state);
	if (arguments)
		fprintf(file, " %zu", *(size_t *)arguments);
	end_line();
	return 0;
}

static int finalize(void *context)
{
	begin_line("finalize");
	put_object("context", context);
	end_line();
	return 0;
}

#define PLUGIN(version, of)                                                                       \
	static int start_##version(void *context, void **handle, void *descriptor)                \
	{                                                                                         \
		return start_event(version, context, handle, descriptor);                         \
	}                                                                                         \
	struct plugin ncclProfiler_v##version = {"other" #version, init_##of,	 start_##version, \
						 stop_event,	   record_state, finalize};

#ifdef HAS_V1
PLUGIN(1, 1)
#endif
#ifdef HAS_V2
PLUGIN(2, 1)
#endif
#ifdef HAS_V3
PLUGIN(3, 1)
#endif
#ifdef HAS_V4
PLUGIN(4, 4)
#endif
#ifdef HAS_V5
PLUGIN(5, 5)
#endif
#ifdef HAS_V6
PLUGIN(6, 5)
#endif
