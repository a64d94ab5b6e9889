/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Devices, contexts, streams and events. Handles of programs are pointers to these; destroyed ones
 * are kept, to distinguish a stale handle from a live one. Errors are those of result.h. Functions
 * with the suffix _locked need the lock.
 */
#ifndef SIMCUDA_DEVICE_H
#define SIMCUDA_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "test/simcuda/engine/memory/extents.h"
#include "test/simcuda/engine/work.h"

struct sim_op;
struct sim_graph_node;

enum sim_unit { SIM_NO_UNIT, SIM_COMPUTE, SIM_COPY_IN, SIM_COPY_OUT, SIM_COPY_LOCAL, SIM_N_UNITS };

/* Kernels or copies of a device that run, and those that wait for their turn. */
struct sim_unit_queue {
	int n_running, n_most;
	struct sim_op *first, *last;
};

struct sim_device {
	int ordinal;
	bool is_open;
	int memory_fd;
	uint64_t memory_base;
	char *memory_at;
	struct sim_extents free_memory;
	struct sim_unit_queue units[SIM_N_UNITS];
	struct sim_context *primary;
	int n_primary_users;
	unsigned primary_flags;
	struct sim_pool *default_pool, *current_pool, *graph_pool;
};

struct sim_context {
	uint32_t magic, id;
	struct sim_device *device;
	unsigned flags;
	uint32_t n_streams;
	struct sim_stream *legacy;
	struct sim_stream *streams; /* all of them, through next */
	int error; /* what a kernel died of: every later call fails with it */
	uint64_t graph_bytes;
	uint64_t offset, bytes; /* what it takes of the device's memory itself */
};

/* A stream's part in a capture; see capture.h. */
struct sim_capture_end {
	struct sim_capture *capture;
	struct sim_graph_node **after; /* what the next node depends on */
	size_t n_after;
};

struct sim_stream {
	uint32_t magic, id;
	uint64_t unique_id;
	struct sim_context *context;
	struct sim_stream *next;
	unsigned flags; /* 1: does not wait for the legacy stream */
	int priority;
	uint32_t owner; /* the thread that has it as default stream, or 0 */
	struct sim_op *tail; /* the operation submitted last, until it ends; a reference */
	int n_pending;
	struct sim_capture_end end;
};

struct sim_event {
	uint32_t magic, id;
	struct sim_event *next; /* among destroyed ones */
	unsigned flags;
	struct sim_context *context;
	struct sim_op *op; /* the record, until it ends; a reference */
	bool is_recorded;
	uint32_t stream;
	struct sim_capture_end end; /* where it was recorded in a capture */
};

/* The device of that ordinal, or NULL. */
struct sim_device *sim_device(int ordinal);
bool sim_device_owns(uint64_t address);

/* Begin to simulate: 0 or an error, the same at each call. */
int sim_begin(void);

/* 0 once sim_begin succeeded, in a process that was not forked since. */
int sim_check_begun(void);

/* True in a child that was forked after sim_begin: nothing works there. */
bool sim_is_forked(void);

/* Retain or release the primary context; the last release destroys it. */
int sim_primary_retain(struct sim_device *device, struct sim_context **context);
int sim_primary_release(struct sim_device *device);
int sim_context_create(struct sim_device *device, unsigned flags, struct sim_context **context);
int sim_context_destroy(struct sim_context *context);
bool sim_context_is_live(const struct sim_context *context);

/* The calling thread's, which the driver sets; NULL: it has none, or that was destroyed. */
struct sim_context *sim_context_current(void);
void sim_context_set_current(struct sim_context *context);

int sim_stream_create(struct sim_context *context, unsigned flags, int priority,
		      struct sim_stream **stream);
int sim_stream_destroy(struct sim_stream *stream);
bool sim_stream_is_live(const struct sim_stream *stream);

/* The default stream of the calling thread in the context. */
struct sim_stream *sim_stream_of_thread(struct sim_context *context);

int sim_event_create(struct sim_context *context, unsigned flags, struct sim_event **event);
int sim_event_destroy(struct sim_event *event);
bool sim_event_is_live(const struct sim_event *event);

/* 0, 600 while it is not reached, or an error. */
int sim_event_query(struct sim_event *event);
int sim_event_synchronize(struct sim_event *event);
int sim_event_elapsed(const struct sim_event *from, const struct sim_event *to,
		      float *milliseconds);

/*
 * Submit work; in a capture a node is made of it. sets *op, where it is not NULL, to a reference.
 */
int sim_stream_submit(struct sim_stream *stream, const struct sim_work *work, struct sim_op **op);
int sim_stream_query(struct sim_stream *stream);
int sim_stream_synchronize(struct sim_stream *stream);
int sim_context_synchronize(struct sim_context *context);

/*
 * The same for functions that free memory: no synchronisation is reported, and no end of a capture.
 */
int sim_context_wait(struct sim_context *context);

#endif
