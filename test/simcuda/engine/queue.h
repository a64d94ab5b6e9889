/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The discrete-event engine: operations wait for others, then for their unit of the device, run for
 * their duration, and end in the order of time. Time is moved on by whoever calls: up to the clock
 * on each submission and query, up to the next end when somebody waits; a thread of the engine does
 * it while something with an effect on the program is pending.
 *
 * All functions need the lock.
 */
#ifndef SIMCUDA_QUEUE_H
#define SIMCUDA_QUEUE_H

#include "test/simcuda/engine/device.h"

enum sim_op_state { SIM_OP_WAITING, SIM_OP_READY, SIM_OP_RUNNING, SIM_OP_DONE };

struct sim_op {
	enum sim_op_state state;
	int n_refs;
	int n_waits; /* operations that have to end first, and 1 until it is submitted */
	struct sim_work work;
	enum sim_unit unit;
	struct sim_device *device;
	struct sim_context *context;
	struct sim_stream *stream; /* the stream with this pending operation, or NULL */
	uint32_t stream_id, thread;
	uint64_t correlation;
	uint32_t graph_id; /* of the executable graph, or 0 */
	uint64_t graph_node; /* 0: none */
	bool is_visible;
	bool is_forced_out; /* CUPTI has recorded it without its end */
	bool ends_graph;
	struct sim_op *graph_end; /* the operation that ends the launch that this one is of */
	/* of the one that ends it: when the first of its nodes started; 0 before */
	uint64_t graph_start_ns;
	int error; /* what became of it */
	uint32_t event_id; /* of the event that is recorded by it */
	uint64_t event_sync_id;
	uint64_t submitted_ns, ready_ns, start_ns, end_ns;
	struct sim_waiter *waiters;
	struct sim_op *next; /* in the unit's queue, or among free ones */
};

/* A new operation with one reference, that waits for nothing yet. */
struct sim_op *sim_op_create(struct sim_context *context, const struct sim_work *work);

/* It starts no earlier than before ends. */
void sim_op_after(struct sim_op *op, struct sim_op *before);

/* All of its waits are resolved: it may start, at t_ns at the earliest. */
void sim_op_submit(struct sim_op *op, uint64_t t_ns);

void sim_op_ref(struct sim_op *op);
void sim_op_unref(struct sim_op *op);

/*
 * An operation of the stream, behind all that it has to wait for: the stream's last, other
 * streams', an event.
 */
struct sim_op *sim_stream_op(struct sim_stream *stream, const struct sim_work *work);

/* Make it the stream's last, and submit it. */
void sim_stream_append(struct sim_stream *stream, struct sim_op *op, uint64_t t_ns);

/* The event is recorded by this operation. */
void sim_event_set_op(struct sim_event *event, struct sim_op *op);

/* End all that ends by now. */
void sim_run(void);

/* Run until the operation has ended. The lock is given up meanwhile. */
void sim_wait_for(struct sim_op *op);

/* Run until the stream has fewer than the given number of pending operations. */
void sim_wait_for_room(struct sim_stream *stream, int n_most);

/* An operation on the host's side has ended now. */
void sim_op_finish_host(struct sim_op *op);

/* Hand a ready host function to the engine's thread (background.c). */
void sim_background_call(struct sim_op *op);

/* The engine's thread has to move time on, from now until as many calls with -1. */
void sim_background_need(int n);

/* Call with each operation that runs on a device. */
void sim_each_running(void (*call)(struct sim_op *op));

/* The next moment at which something starts or ends; UINT64_MAX: none. */
uint64_t sim_next_time(void);

/* Wait, without the lock, for t_ns or for what a host function does. */
void sim_wait_until(uint64_t t_ns);

/* Wake the waiting threads. */
void sim_wake(void);

#endif
