/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The interface of the simulated CUPTI's tracer. There is at most one tracer, and none until CUPTI
 * is used.
 */
#ifndef SIMCUDA_TRACE_H
#define SIMCUDA_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_call;
struct sim_context;
struct sim_op;
struct sim_stream;
struct sim_graph_node;

/* The values of CUpti_ActivityMemoryKind. */
enum sim_memory_kind {
	SIM_MEMORY_UNKNOWN = 0,
	SIM_MEMORY_PAGEABLE = 1,
	SIM_MEMORY_PINNED = 2,
	SIM_MEMORY_DEVICE = 3,
	SIM_MEMORY_ARRAY = 4,
	SIM_MEMORY_MANAGED = 5,
	SIM_MEMORY_DEVICE_STATIC = 6,
};

struct sim_memory_event {
	bool is_release;
	enum sim_memory_kind kind;
	uint64_t address, bytes, t_ns, correlation;
	int device;
	uint32_t context, stream;
	bool is_async;
	uint64_t pool; /* 0: none */
	uint64_t pool_used_bytes, pool_reserved_bytes, pool_threshold;
};

/* The values of CUpti_ActivitySynchronizationType. */
enum sim_wait_kind {
	SIM_WAIT_EVENT = 1,
	SIM_WAIT_STREAM_EVENT = 2,
	SIM_WAIT_STREAM = 3,
	SIM_WAIT_CONTEXT = 4,
};

struct sim_wait_event {
	enum sim_wait_kind kind;
	uint64_t begin_ns, end_ns, correlation;
	uint32_t context, stream, event;
};

/* The values of CUpti_CallbackIdResource. */
enum sim_resource {
	SIM_CONTEXT_CREATED = 1,
	SIM_CONTEXT_DESTROYED = 2,
	SIM_STREAM_CREATED = 3,
	SIM_STREAM_DESTROYED = 4,
	SIM_MODULE_LOADED = 6,
	SIM_MODULE_UNLOADED = 7,
	SIM_GRAPH_CREATED = 9,
	SIM_GRAPH_DESTROYED = 10,
	SIM_GRAPH_CLONED = 11,
	SIM_NODE_CREATED = 13,
	SIM_NODE_DESTROYED = 14,
	SIM_EXEC_CREATED = 18,
	SIM_EXEC_DESTROYED = 19,
	SIM_NODE_CLONED = 20,
};

struct sim_resource_event {
	enum sim_resource what;
	struct sim_context *context;
	struct sim_stream *stream;
	const void *module;
	size_t module_bytes;
	uint32_t module_id;
	void *graph, *original_graph, *exec;
	struct sim_graph_node *node, *original_node;
};

/*
 * call_begins, call_ends and resource are called without the engine's lock, on the thread that
 * calls; op_ends with the lock, by whichever thread moves the devices on; the others with or
 * without it.
 */
struct sim_tracer {
	void (*call_begins)(struct sim_call *call);
	void (*call_ends)(struct sim_call *call);
	void (*op_ends)(const struct sim_op *op);
	void (*memory)(const struct sim_memory_event *event);
	void (*waited)(const struct sim_wait_event *event);
	void (*resource)(const struct sim_resource_event *event);
};

const struct sim_tracer *sim_tracer(void);
void sim_tracer_set(const struct sim_tracer *tracer);

#endif
