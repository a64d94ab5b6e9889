/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Events: the moment at which a stream came to where they were recorded. */
#include <stdlib.h>
#include <string.h>

#include "test/simcuda/engine/call.h"
#include "test/simcuda/engine/capture.h"
#include "test/simcuda/engine/clock.h"
#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/queue.h"
#include "test/simcuda/engine/result.h"

enum { EVENT_MAGIC = 0x45766e74, WITHOUT_TIMING = 2 };

/*
 * Destroyed events are used again, the oldest first, once there are many: a stale handle is no live
 * one for long.
 */
enum { N_KEPT = 4096 };

static uint32_t last_id;
static struct sim_event *oldest, *newest;
static int n_destroyed;

bool sim_event_is_live(const struct sim_event *event)
{
	return event && event->magic == EVENT_MAGIC;
}

/* With the lock. */
static struct sim_event *reuse_event(void)
{
	struct sim_event *event = oldest;

	if (n_destroyed < N_KEPT)
		return NULL;
	oldest = event->next;
	n_destroyed--;
	memset(event, 0, sizeof(*event));
	return event;
}

/* With the lock. */
static void keep_destroyed(struct sim_event *event)
{
	event->next = NULL;
	if (n_destroyed++)
		newest->next = event;
	else
		oldest = event;
	newest = event;
}

int sim_event_create(struct sim_context *context, unsigned flags, struct sim_event **out)
{
	struct sim_event *event;

	sim_lock();
	event = reuse_event();
	if (!event)
		event = calloc(1, sizeof(*event));
	if (event)
		event->id = ++last_id;
	sim_unlock();
	if (!event)
		return SIM_OUT_OF_MEMORY;
	event->flags = flags;
	event->context = context;
	event->magic = EVENT_MAGIC;
	*out = event;
	return SIM_SUCCESS;
}

void sim_event_set_op(struct sim_event *event, struct sim_op *op)
{
	static uint64_t last_sync_id;

	sim_op_unref(event->op);
	sim_op_ref(op);
	event->op = op;
	event->is_recorded = true;
	event->stream = op->stream_id;
	op->event_id = event->id;
	op->event_sync_id = ++last_sync_id;
}

int sim_event_destroy(struct sim_event *event)
{
	sim_lock();
	event->magic = 0;
	sim_op_unref(event->op);
	event->op = NULL;
	sim_capture_leave(&event->end);
	keep_destroyed(event);
	sim_unlock();
	return SIM_SUCCESS;
}

int sim_event_query(struct sim_event *event)
{
	int result = SIM_SUCCESS;

	sim_lock();
	sim_run();
	if (event->end.capture)
		result = SIM_CAPTURED_EVENT;
	else if (event->op && event->op->state != SIM_OP_DONE)
		result = SIM_NOT_READY;
	else
		result = event->context->error;
	sim_unlock();
	return result;
}

int sim_event_synchronize(struct sim_event *event)
{
	const struct sim_tracer *tracer = sim_tracer();
	struct sim_wait_event wait = {
		.kind = SIM_WAIT_EVENT,
		.begin_ns = sim_now(),
		.correlation = sim_call_correlation(),
		.context = event->context->id,
		.stream = event->stream,
		.event = event->id,
	};

	if (event->end.capture)
		return SIM_CAPTURED_EVENT;
	sim_lock();
	sim_wait_for(event->op);
	sim_unlock();
	wait.end_ns = sim_now();
	if (tracer && tracer->waited)
		tracer->waited(&wait);
	return event->context->error;
}

int sim_event_elapsed(const struct sim_event *from, const struct sim_event *to, float *milliseconds)
{
	int result = SIM_SUCCESS;

	sim_lock();
	sim_run();
	if ((from->flags | to->flags) & WITHOUT_TIMING || !from->is_recorded || !to->is_recorded ||
	    !from->op || !to->op)
		result = SIM_INVALID_HANDLE;
	else if (from->op->state != SIM_OP_DONE || to->op->state != SIM_OP_DONE)
		result = SIM_NOT_READY;
	else
		*milliseconds = (float)((double)(int64_t)(to->op->end_ns - from->op->end_ns) / 1e6);
	sim_unlock();
	return result;
}
