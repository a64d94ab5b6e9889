/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What NCCL reports of the program's calls, and when: the call itself (interfaces from 5 on), and
 * at the end of the outermost group the plan, its tasks and its launch. An event is reported if the
 * plugin asked for it, or for one that is part of it.
 */
#include "test/simcuda/nccl/profiler.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "test/simcuda/engine/log/log.h"

#define N_TASKS 256
#define CE_BYTES (4u << 20) /* from here on a gather is done by copy engines (interface 6) */
#define LARGE_BYTES (64u << 10)

enum {
	STEPS = PROFILE_PROXY_STEP | PROFILE_NET,
	OPERATIONS = PROFILE_PROXY_OP | STEPS,
	TASKS = OPERATIONS | PROFILE_KERNEL_CH,
	CE = PROFILE_CE_COLL | PROFILE_CE_SYNC | PROFILE_CE_BATCH,
	API = PROFILE_GROUP_API | PROFILE_COLL_API | PROFILE_P2P_API | PROFILE_KERNEL_LAUNCH,
};

struct task {
	struct profiler *profiler;
	struct profiled_call call;
	struct profiled api, event;
	int mask; /* as when it was called */
};

/* The thread's open group. */
static _Thread_local struct task tasks[N_TASKS];
static _Thread_local unsigned n_tasks;
static _Thread_local struct profiled group_api;
static _Thread_local bool has_group_api;

const char *profiler_type_name(ncclDataType_t type)
{
	static const char *const names[] = {
		"ncclInt8",   "ncclUint8",   "ncclInt32",   "ncclUint32",  "ncclInt64",
		"ncclUint64", "ncclFloat16", "ncclFloat32", "ncclFloat64", "ncclBfloat16"};

	return (unsigned)type < sizeof(names) / sizeof(*names) ? names[type] : "Unknown";
}

static size_t type_bytes(ncclDataType_t type)
{
	static const size_t bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

	return (unsigned)type < sizeof(bytes) / sizeof(*bytes) ? bytes[type] : 1;
}

struct profiler *profiler_begin(const char *name, uint64_t hash, int n_ranks, int rank)
{
	static _Atomic unsigned last_number;
	struct profiler *profiler = malloc(sizeof(*profiler));

	*profiler = (struct profiler){.name = name ? strdup(name) : NULL,
				      .hash = hash,
				      .n_ranks = n_ranks,
				      .rank = rank,
				      .number = ++last_number};
	if (profiler_load(profiler))
		return profiler;
	free(profiler);
	return NULL;
}

void profiler_end(struct profiler *profiler)
{
	if (!profiler)
		return;
	profiler_proxy_drain();
	/* NCCL up to 2.28 finalizes each context, later ones those that are not NULL. */
	if (profiler->context || profiler_version < 6)
		profiler_plugin->finalize(profiler->context);
	sim_log("{\"kind\":\"nccl\",\"what\":\"finalize\",\"communicator\":%u}", profiler->number);
	profiler_unload();
	free((char *)profiler->name);
	free(profiler);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static struct profiled_event describe(int type, const struct profiled_call *call)
{
	return (struct profiled_event){.type = type,
				       .call = call,
				       .count = call->count,
				       .peer = call->peer,
				       .datatype = profiler_type_name(call->type)};
}

static void call_api(struct task *task, int depth)
{
	struct profiled_event event = describe(PROFILE_GROUP_API, &task->call);
	bool is_message = task->call.peer >= 0;

	event.depth = depth ? depth : 1;
	if (!has_group_api &&
	    task->mask & (API | PROFILE_GROUP | PROFILE_COLL | PROFILE_P2P | TASKS | CE)) {
		group_api = profiler_start(task->profiler, &event);
		has_group_api = true;
		profiler_state(group_api, STATE_GROUP_START_STOP, 0, 0);
	}
	event.type = is_message ? PROFILE_P2P_API : PROFILE_COLL_API;
	event.parent = group_api;
	if (!(task->mask & (is_message ? PROFILE_P2P_API | PROFILE_P2P | TASKS
				       : PROFILE_COLL_API | PROFILE_COLL | TASKS | CE)))
		return;
	task->api = profiler_start(task->profiler, &event);
	profiler_stop(&task->api);
}

void profiler_call(struct profiler *profiler, const struct profiled_call *call, int depth)
{
	struct task *task = &tasks[n_tasks];

	if (!profiler || n_tasks == N_TASKS)
		return;
	*task = (struct task){.profiler = profiler, .call = *call, .mask = profiler_mask};
	n_tasks++;
	if (profiler_version >= 5)
		call_api(task, depth);
}

/* ---- Launches -------------------------------------------------------------------------------- */

static unsigned function_of(const char *name)
{
	static const char *const names[] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter"};
	unsigned i = 0;

	while (i < 4 && strcmp(names[i], name))
		i++;
	return i;
}

static bool is_by_copy_engines(const struct task *task)
{
	return profiler_version >= 6 && !strcmp(task->call.function, "AllGather") &&
	       task->call.count * type_bytes(task->call.type) >= CE_BYTES;
}

static void run_by_copy_engines(struct task *task)
{
	struct profiled_event event = describe(PROFILE_CE_COLL, &task->call);
	struct profiled part;

	event.rank = task->profiler->rank;
	event.sequence = task->profiler->sequences[6]++;
	event.parent = task->api;
	if (!(profiler_mask & CE))
		return;
	task->event = profiler_start(task->profiler, &event);
	event = (struct profiled_event){.type = PROFILE_CE_SYNC, .parent = task->event};
	if (task->event.handle && profiler_mask & PROFILE_CE_SYNC) {
		part = profiler_start(task->profiler, &event);
		profiler_stop(&part);
	}
	event = (struct profiled_event){.type = PROFILE_CE_BATCH,
					.parent = task->event,
					.operations = task->profiler->n_ranks,
					.bytes = task->call.count * type_bytes(task->call.type)};
	if (task->event.handle && profiler_mask & PROFILE_CE_BATCH) {
		part = profiler_start(task->profiler, &event);
		profiler_stop(&part);
	}
	profiler_stop(&task->event);
}

/* NCCL moves gathers and broadcasts as bytes. */
static bool is_of_bytes(const struct profiled_call *call)
{
	return !strcmp(call->function, "AllGather") || !strcmp(call->function, "Broadcast");
}

static void start_task(struct task *task, struct profiled group)
{
	bool is_message = task->call.peer >= 0;
	struct profiled_event event =
		describe(is_message ? PROFILE_P2P : PROFILE_COLL, &task->call);
	size_t bytes = task->call.count * type_bytes(task->call.type);

	event.rank = task->profiler->rank;
	event.parent = task->api;
	event.group = group;
	event.channels = bytes > LARGE_BYTES ? 4 : 2;
	event.warps = 16;
	if (!is_message) {
		event.algorithm = bytes > LARGE_BYTES ? "RING" : "TREE";
		event.protocol = bytes > LARGE_BYTES ? "SIMPLE" : "LL";
		event.sequence = task->profiler->sequences[function_of(task->call.function)]++;
	}
	if (is_of_bytes(&task->call)) {
		event.count = bytes;
		event.datatype = "ncclInt8";
	}
	if (task->mask & (is_message ? PROFILE_P2P | TASKS : PROFILE_COLL | TASKS))
		task->event = profiler_start(task->profiler, &event);
}

static void launch_kernel(const struct task *task)
{
	struct profiled_event event = describe(PROFILE_KERNEL_LAUNCH, &task->call);
	struct profiled launch;

	if (profiler_version < 5 || !(task->mask & PROFILE_KERNEL_LAUNCH))
		return;
	event.parent = group_api;
	launch = profiler_start(task->profiler, &event);
	profiler_stop(&launch);
}

/* The tasks of one communicator are one plan. */
static void launch_plan(struct task **plan, unsigned n)
{
	struct profiled_event event = {.type = PROFILE_GROUP};
	struct profiled group = {NULL, 0};

	if (plan[0]->mask & (PROFILE_GROUP | PROFILE_COLL | PROFILE_P2P | TASKS))
		group = profiler_start(plan[0]->profiler, &event);
	for (unsigned i = 0; i < n; i++)
		start_task(plan[i], group);
	launch_kernel(plan[0]);
	for (unsigned i = 0; i < n; i++) {
		struct profiled *task = &plan[i]->event;

		profiler_proxy(plan[i]->profiler, *task,
			       plan[i]->call.count * type_bytes(plan[i]->call.type));
		profiler_stop(task);
	}
	profiler_stop(&group);
}

/* Take the tasks of the first one's communicator: those that need a kernel. Returns how many. */
static unsigned take_plan(struct task **plan, unsigned first)
{
	struct profiler *profiler = tasks[first].profiler;
	unsigned n = 0;

	for (unsigned i = first; profiler && i < n_tasks; i++) {
		if (tasks[i].profiler != profiler)
			continue;
		if (is_by_copy_engines(&tasks[i])) {
			run_by_copy_engines(&tasks[i]);
			tasks[i].profiler = NULL;
		} else {
			plan[n++] = &tasks[i];
		}
	}
	return n;
}

void profiler_launch(void)
{
	struct task *plan[N_TASKS];

	if (has_group_api)
		profiler_state(group_api, STATE_GROUP_END_START, 0, 0);
	for (unsigned i = 0; i < n_tasks; i++) {
		unsigned n = take_plan(plan, i);

		if (n)
			launch_plan(plan, n);
		for (unsigned k = 0; k < n; k++)
			plan[k]->profiler = NULL;
	}
	n_tasks = 0;
	if (has_group_api)
		profiler_stop(&group_api);
	has_group_api = false;
	group_api = (struct profiled){NULL, 0};
}
