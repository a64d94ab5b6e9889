/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The simulated NCCL's side of the profiler interface: it finds and calls a plugin as NCCL does, on
 * the threads that NCCL calls it on, and logs each call as ground truth ("kind":"nccl").
 */
#ifndef SIMCUDA_NCCL_PROFILER_H
#define SIMCUDA_NCCL_PROFILER_H

#include <stdbool.h>
#include <stdint.h>

#include "nccl_api.h"
#include "test/simcuda/nccl/profiler_abi.h"

/* An event of which the plugin knows. */
struct profiled {
	void *handle; /* NULL: the plugin gave none */
	unsigned id; /* in the log; 0: it was not reported */
};

/* A call of the program's. peer: of a message, -1: it is a collective. */
struct profiled_call {
	const char *function;
	const void *from;
	void *to;
	size_t count;
	ncclDataType_t type;
	int root, peer;
	cudaStream_t stream;
};

/* Of a communicator. */
struct profiler;

/* The version that the simulated NCCL is, by the newest interface that it has. */
int profiler_nccl_version(void);

/* A communicator was made; name may be NULL. Returns NULL where there is no plugin. */
struct profiler *profiler_begin(const char *name, uint64_t hash, int n_ranks, int rank);

/* It ends, after what its proxy does. */
void profiler_end(struct profiler *profiler);

/* The program made a call in a group of this depth, 0: alone. */
void profiler_call(struct profiler *profiler, const struct profiled_call *call, int depth);

/* The thread's outermost group ended: what was called is launched. */
void profiler_launch(void);

/* ---- Between the files ----------------------------------------------------------------------- */

/* What is reported, for all interfaces; fields as in profiler_abi.h. */
struct profiled_event {
	int type;
	struct profiled parent, group;
	const struct profiled_call *call;
	const char *datatype, *algorithm, *protocol;
	size_t count;
	uint64_t sequence;
	int rank, channels, warps, channel, peer, steps, chunk, is_send, step, depth, operations;
	uint64_t timer;
	size_t bytes;
	struct socket_event *socket;
};

struct profiler {
	void *context;
	const char *name;
	uint64_t hash;
	int n_ranks, rank;
	unsigned number; /* in the log */
	uint64_t sequences[8]; /* by function */
};

extern int profiler_mask; /* the plugin sets it */
extern unsigned profiler_version; /* the plugin's interface; 0: there is no plugin */
extern const struct plugin *profiler_plugin;

/* Find the plugin and initialize it for a communicator; returns whether there is one. */
bool profiler_load(struct profiler *profiler);

/* Another communicator has ended: with the last one the plugin is closed. */
void profiler_unload(void);

/* Report the begin, a state, the end of an event, and log it. */
struct profiled profiler_start(struct profiler *profiler, const struct profiled_event *event);
void profiler_state(struct profiled event, int state, uint64_t value, int steps);
void profiler_stop(struct profiled *event);

/* What the proxy's thread does for a call that was launched, whose event is this. */
void profiler_proxy(struct profiler *profiler, struct profiled task, size_t bytes);

/* Wait until it has done all. */
void profiler_proxy_drain(void);

const char *profiler_type_name(ncclDataType_t type);

#endif
