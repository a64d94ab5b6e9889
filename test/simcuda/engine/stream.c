/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Streams: what is submitted to one runs in order; the legacy stream and blocking streams wait for
 * each other.
 */
#include <stdlib.h>

#include "test/simcuda/engine/call.h"
#include "test/simcuda/engine/capture.h"
#include "test/simcuda/engine/clock.h"
#include "test/simcuda/engine/config.h"
#include "test/simcuda/engine/graph.h"
#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/log/log.h"
#include "test/simcuda/engine/memory/pool.h"
#include "test/simcuda/engine/queue.h"
#include "test/simcuda/engine/result.h"

enum {
	STREAM_MAGIC = 0x5374726d,
	NON_BLOCKING = 1,
	/* As CUPTI numbers them: 7 is the default stream, the first that is created 13. */
	LEGACY_ID = 7,
	FIRST_ID = 13,
};

static uint64_t last_unique_id;

bool sim_stream_is_live(const struct sim_stream *stream)
{
	return stream && stream->magic == STREAM_MAGIC;
}

static void report(enum sim_resource what, struct sim_stream *stream)
{
	const struct sim_tracer *tracer = sim_tracer();

	if (tracer && tracer->resource && stream != stream->context->legacy)
		tracer->resource(&(struct sim_resource_event){
			.what = what, .context = stream->context, .stream = stream});
}

int sim_stream_create(struct sim_context *context, unsigned flags, int priority,
		      struct sim_stream **out)
{
	struct sim_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return SIM_OUT_OF_MEMORY;
	stream->magic = STREAM_MAGIC;
	stream->context = context;
	stream->flags = flags;
	stream->priority = priority;
	sim_lock();
	stream->id = context->n_streams ? FIRST_ID + context->n_streams - 1 : LEGACY_ID;
	stream->unique_id = ++last_unique_id;
	context->n_streams++;
	stream->next = context->streams;
	context->streams = stream;
	sim_unlock();
	*out = stream;
	if (context->legacy)
		report(SIM_STREAM_CREATED, stream);
	return SIM_SUCCESS;
}

int sim_stream_destroy(struct sim_stream *stream)
{
	if (stream == stream->context->legacy)
		return SIM_INVALID_HANDLE;
	report(SIM_STREAM_DESTROYED, stream);
	sim_lock();
	sim_capture_abandon(stream);
	stream->magic = 0;
	sim_unlock();
	return SIM_SUCCESS;
}

struct sim_stream *sim_stream_of_thread(struct sim_context *context)
{
	struct sim_stream *stream;

	sim_lock();
	for (stream = context->streams; stream; stream = stream->next)
		if (stream->owner == sim_thread_id())
			break;
	sim_unlock();
	if (stream || sim_stream_create(context, 0, 0, &stream))
		return stream;
	stream->owner = sim_thread_id();
	return stream;
}

/*
 * What was submitted to other streams before, and is to end first by the rules of the legacy
 * stream.
 */
static void wait_for_others(struct sim_op *op, struct sim_stream *stream)
{
	struct sim_context *context = stream->context;

	if (stream->flags & NON_BLOCKING)
		return;
	if (stream != context->legacy) {
		sim_op_after(op, context->legacy->tail);
		return;
	}
	for (struct sim_stream *other = context->streams; other; other = other->next)
		if (other != stream && !(other->flags & NON_BLOCKING))
			sim_op_after(op, other->tail);
}

void sim_stream_append(struct sim_stream *stream, struct sim_op *op, uint64_t t_ns)
{
	/* Before it is submitted: it may end there. */
	sim_op_unref(stream->tail);
	sim_op_ref(op);
	stream->tail = op;
	sim_op_submit(op, t_ns);
}

struct sim_op *sim_stream_op(struct sim_stream *stream, const struct sim_work *work)
{
	struct sim_op *op = sim_op_create(stream->context, work);

	op->stream = stream;
	op->stream_id = stream->id;
	sim_op_after(op, stream->tail);
	wait_for_others(op, stream);
	if (work->kind == SIM_WAIT)
		sim_op_after(op, work->event->op);
	return op;
}

static int submit_now(struct sim_stream *stream, const struct sim_work *work, struct sim_op **out)
{
	uint64_t latency =
		work->kind == SIM_KERNEL || work->kind == SIM_COPY || work->kind == SIM_MEMSET
			? sim_config()->launch_ns
			: 0;

	if (stream->n_pending >= sim_config()->queue_depth)
		sim_wait_for_room(stream, sim_config()->queue_depth);
	sim_run();
	struct sim_op *op = sim_stream_op(stream, work);
	if (work->kind == SIM_RECORD)
		sim_event_set_op(work->event, op);
	sim_stream_append(stream, op, sim_now() + latency);
	if (out)
		*out = op;
	else
		sim_op_unref(op);
	return SIM_SUCCESS;
}

static void report_wait(enum sim_wait_kind kind, struct sim_context *context, uint32_t stream,
			uint64_t begin_ns)
{
	const struct sim_tracer *tracer = sim_tracer();
	struct sim_wait_event event = {
		.kind = kind,
		.begin_ns = begin_ns,
		.end_ns = sim_now(),
		.correlation = sim_call_correlation(),
		.context = context->id,
		.stream = stream,
	};

	if (tracer && tracer->waited)
		tracer->waited(&event);
	if (sim_log_is_on())
		sim_log("{\"kind\":\"sync\",\"type\":%d,\"context\":%u,\"stream\":%u,\"start\":%lu,\"end\":%lu,"
			"\"correlation\":%lu,\"thread\":%u}",
			kind, context->id, stream, begin_ns, event.end_ns, event.correlation,
			sim_thread_id());
}

int sim_stream_submit(struct sim_stream *stream, const struct sim_work *work, struct sim_op **out)
{
	int result;

	if (out)
		*out = NULL;
	if (stream->context->error)
		return stream->context->error;
	sim_lock();
	if (sim_capture_takes(stream, work))
		result = sim_capture_add(stream, work);
	else if (work->kind == SIM_WAIT && work->event->end.capture)
		result = SIM_CAPTURE_ISOLATION;
	else
		result = submit_now(stream, work, out);
	sim_unlock();
	if (work->kind == SIM_WAIT && !result)
		report_wait(SIM_WAIT_STREAM_EVENT, stream->context, stream->id, sim_now());
	return result;
}

int sim_stream_query(struct sim_stream *stream)
{
	int result;

	sim_lock();
	result = sim_capture_forbids(stream);
	if (!result) {
		sim_run();
		result = stream->n_pending ? SIM_NOT_READY : stream->context->error;
	}
	sim_unlock();
	return result;
}

int sim_stream_synchronize(struct sim_stream *stream)
{
	uint64_t begin_ns = sim_now();
	int result;

	sim_lock();
	result = sim_capture_forbids(stream);
	if (!result) {
		sim_wait_for(stream->tail);
		result = stream->context->error;
	}
	sim_unlock();
	report_wait(SIM_WAIT_STREAM, stream->context, stream->id, begin_ns);
	return result;
}

int sim_context_wait(struct sim_context *context)
{
	sim_lock();
	for (struct sim_stream *stream = context->streams; stream; stream = stream->next)
		sim_wait_for(stream->tail);
	sim_unlock();
	sim_pool_trim_all(context->device);
	return context->error;
}

int sim_context_synchronize(struct sim_context *context)
{
	uint64_t begin_ns = sim_now();
	int result = SIM_SUCCESS;

	sim_lock();
	for (struct sim_stream *stream = context->streams; stream && !result; stream = stream->next)
		result = sim_capture_forbids(stream);
	sim_unlock();
	if (!result)
		result = sim_context_wait(context);
	report_wait(SIM_WAIT_CONTEXT, context, UINT32_MAX, begin_ns);
	return result;
}
