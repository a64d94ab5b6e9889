/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Streams, events, host functions and capture. */
#include "test/simcuda/driver/driver.h"

#include <stdlib.h>

#include "test/simcuda/engine/call.h"
#include "test/simcuda/engine/capture.h"
#include "test/simcuda/engine/lock.h"
#include "test/simcuda/engine/queue.h"

CUresult drv_stream(CUstream handle, struct sim_stream **stream)
{
	const struct sim_call *call = sim_call_current();
	struct sim_context *context;
	bool is_own = handle == CU_STREAM_PER_THREAD || (!handle && call && call->is_per_thread);
	int result = sim_check_begun();

	if (result)
		return (CUresult)result;
	if (handle && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD) {
		*stream = (struct sim_stream *)handle;
		return sim_stream_is_live(*stream) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
	}
	result = drv_context(&context);
	if (!result)
		*stream = is_own ? sim_stream_of_thread(context) : context->legacy;
	return (CUresult)result;
}

struct sim_stream *drv_capturing(CUstream handle)
{
	struct sim_stream *stream;

	return !drv_stream(handle, &stream) && stream->end.capture ? stream : NULL;
}

CUresult drv_submit(CUstream handle, const struct sim_work *work)
{
	struct sim_stream *stream;
	CUresult result = drv_stream(handle, &stream);

	return result ? result : (CUresult)sim_stream_submit(stream, work, NULL);
}

CUresult drv_submit_and_wait(CUstream handle, const struct sim_work *work)
{
	struct sim_stream *stream;
	struct sim_op *op;
	CUresult result = drv_stream(handle, &stream);

	if (!result)
		result = (CUresult)sim_stream_submit(stream, work, &op);
	if (result || !op)
		return result;
	sim_lock();
	sim_wait_for(op);
	result = (CUresult)op->error;
	sim_op_unref(op);
	sim_unlock();
	return result;
}

static CUresult create_stream(CUstream *handle, unsigned flags, int priority)
{
	struct sim_context *context;
	CUresult result = drv_context(&context);

	if (!result && flags > CU_STREAM_NON_BLOCKING)
		result = CUDA_ERROR_INVALID_VALUE;
	return result ? result
		      : (CUresult)sim_stream_create(context, flags, priority,
						    (struct sim_stream **)handle);
}

CUresult do_cuStreamCreate(const cuStreamCreate_p *p)
{
	return create_stream(p->phStream, p->Flags, 0);
}

CUresult do_cuStreamCreateWithPriority(const cuStreamCreateWithPriority_p *p)
{
	return create_stream(p->phStream, p->flags, p->priority);
}

CUresult do_cuStreamDestroy_v2(const cuStreamDestroy_v2_p *p)
{
	struct sim_stream *stream = (struct sim_stream *)p->hStream;

	return sim_stream_is_live(stream) ? (CUresult)sim_stream_destroy(stream)
					  : CUDA_ERROR_INVALID_HANDLE;
}

/* A call that needs no more than the stream. */
static CUresult with_stream(CUstream handle, int (*call)(struct sim_stream *))
{
	struct sim_stream *stream;
	CUresult result = drv_stream(handle, &stream);

	return result ? result : (CUresult)call(stream);
}

CUresult do_cuStreamQuery(const cuStreamQuery_p *p)
{
	return with_stream(p->hStream, sim_stream_query);
}

CUresult do_cuStreamSynchronize(const cuStreamSynchronize_p *p)
{
	return with_stream(p->hStream, sim_stream_synchronize);
}

CUresult do_cuStreamGetFlags(const cuStreamGetFlags_p *p)
{
	struct sim_stream *stream;
	CUresult result = drv_stream(p->hStream, &stream);

	if (!result)
		*p->flags = stream->flags;
	return result;
}

CUresult do_cuStreamGetPriority(const cuStreamGetPriority_p *p)
{
	struct sim_stream *stream;
	CUresult result = drv_stream(p->hStream, &stream);

	if (!result)
		*p->priority = stream->priority;
	return result;
}

CUresult do_cuStreamGetCtx(const cuStreamGetCtx_p *p)
{
	struct sim_stream *stream;
	CUresult result = drv_stream(p->hStream, &stream);

	if (!result)
		*p->pctx = (CUcontext)stream->context;
	return result;
}

CUresult do_cuStreamGetId(const cuStreamGetId_p *p)
{
	struct sim_stream *stream;
	CUresult result = drv_stream(p->hStream, &stream);

	if (!result)
		*p->streamId = stream->unique_id;
	return result;
}

static CUresult wait_for_event(CUstream stream, CUevent event)
{
	if (!sim_event_is_live((struct sim_event *)event))
		return CUDA_ERROR_INVALID_HANDLE;
	return drv_submit(stream,
			  &(struct sim_work){.kind = SIM_WAIT, .event = (struct sim_event *)event});
}

CUresult do_cuStreamWaitEvent(const cuStreamWaitEvent_p *p)
{
	return wait_for_event(p->hStream, p->hEvent);
}

CUresult do_cuLaunchHostFunc(const cuLaunchHostFunc_p *p)
{
	struct sim_work work = {.kind = SIM_HOST};

	if (!p->fn)
		return CUDA_ERROR_INVALID_VALUE;
	work.host.call = p->fn;
	work.host.data = p->userData;
	return drv_submit(p->hStream, &work);
}

struct callback {
	CUstreamCallback call;
	CUstream stream;
	void *data;
};

static void call_back(void *data)
{
	struct callback *callback = data;

	callback->call(callback->stream, CUDA_SUCCESS, callback->data);
	free(callback);
}

CUresult do_cuStreamAddCallback(const cuStreamAddCallback_p *p)
{
	struct callback *callback = malloc(sizeof(*callback));
	struct sim_work work = {.kind = SIM_HOST};

	*callback = (struct callback){p->callback, p->hStream, p->userData};
	work.host.call = call_back;
	work.host.data = callback;
	return drv_submit(p->hStream, &work);
}

static CUresult write_value(CUstream stream, CUdeviceptr to, uint64_t value, unsigned bytes)
{
	struct sim_work work = {.kind = SIM_WRITE_VALUE};

	work.write.to = to;
	work.write.value = value;
	work.write.bytes = bytes;
	return drv_submit(stream, &work);
}

CUresult do_cuStreamWriteValue32_v2(const cuStreamWriteValue32_v2_p *p)
{
	return write_value(p->stream, p->addr, p->value, sizeof(p->value));
}

CUresult do_cuStreamWriteValue64_v2(const cuStreamWriteValue64_v2_p *p)
{
	return write_value(p->stream, p->addr, p->value, sizeof(p->value));
}

/* ---- events ---------------------------------------------------------------------------------- */

CUresult do_cuEventCreate(const cuEventCreate_p *p)
{
	struct sim_context *context;
	CUresult result = drv_context(&context);

	return result ? result
		      : (CUresult)sim_event_create(context, p->Flags,
						   (struct sim_event **)p->phEvent);
}

CUresult do_cuEventDestroy_v2(const cuEventDestroy_v2_p *p)
{
	struct sim_event *event = (struct sim_event *)p->hEvent;

	return sim_event_is_live(event) ? (CUresult)sim_event_destroy(event)
					: CUDA_ERROR_INVALID_HANDLE;
}

static CUresult record_event(CUevent event, CUstream stream)
{
	if (!sim_event_is_live((struct sim_event *)event))
		return CUDA_ERROR_INVALID_HANDLE;
	return drv_submit(
		stream, &(struct sim_work){.kind = SIM_RECORD, .event = (struct sim_event *)event});
}

CUresult do_cuEventRecord(const cuEventRecord_p *p)
{
	return record_event(p->hEvent, p->hStream);
}

CUresult do_cuEventRecordWithFlags(const cuEventRecordWithFlags_p *p)
{
	/* An event that a captured graph records at each launch would need a node. */
	if (p->flags & CU_EVENT_RECORD_EXTERNAL && drv_capturing(p->hStream))
		return CUDA_ERROR_NOT_SUPPORTED;
	return record_event(p->hEvent, p->hStream);
}

CUresult do_cuEventQuery(const cuEventQuery_p *p)
{
	struct sim_event *event = (struct sim_event *)p->hEvent;

	return sim_event_is_live(event) ? (CUresult)sim_event_query(event)
					: CUDA_ERROR_INVALID_HANDLE;
}

CUresult do_cuEventSynchronize(const cuEventSynchronize_p *p)
{
	struct sim_event *event = (struct sim_event *)p->hEvent;

	return sim_event_is_live(event) ? (CUresult)sim_event_synchronize(event)
					: CUDA_ERROR_INVALID_HANDLE;
}

static CUresult elapsed(float *milliseconds, CUevent from, CUevent to)
{
	if (!sim_event_is_live((struct sim_event *)from) ||
	    !sim_event_is_live((struct sim_event *)to))
		return CUDA_ERROR_INVALID_HANDLE;
	return (CUresult)sim_event_elapsed((struct sim_event *)from, (struct sim_event *)to,
					   milliseconds);
}

CUresult do_cuEventElapsedTime(const cuEventElapsedTime_p *p)
{
	return elapsed(p->pMilliseconds, p->hStart, p->hEnd);
}

CUresult do_cuEventElapsedTime_v2(const cuEventElapsedTime_v2_p *p)
{
	return elapsed(p->pMilliseconds, p->hStart, p->hEnd);
}

/* ---- capture --------------------------------------------------------------------------------- */

CUresult do_cuStreamBeginCapture_v2(const cuStreamBeginCapture_v2_p *p)
{
	struct sim_stream *stream;
	CUresult result = drv_stream(p->hStream, &stream);

	return result ? result
		      : (CUresult)sim_capture_begin(stream, (enum sim_capture_mode)p->mode, NULL,
						    NULL, 0);
}

CUresult do_cuStreamBeginCaptureToGraph(const cuStreamBeginCaptureToGraph_p *p)
{
	struct sim_stream *stream;
	CUresult result = drv_stream(p->hStream, &stream);

	if (!result && !sim_graph_is_live((struct sim_graph *)p->hGraph))
		result = CUDA_ERROR_INVALID_VALUE;
	return result ? result
		      : (CUresult)sim_capture_begin(stream, (enum sim_capture_mode)p->mode,
						    (struct sim_graph *)p->hGraph,
						    (struct sim_graph_node *const *)p->dependencies,
						    p->numDependencies);
}

CUresult do_cuStreamEndCapture(const cuStreamEndCapture_p *p)
{
	struct sim_stream *stream;
	CUresult result = drv_stream(p->hStream, &stream);

	return result ? result : (CUresult)sim_capture_end(stream, (struct sim_graph **)p->phGraph);
}

static CUstreamCaptureStatus capture_status(const struct sim_stream *stream)
{
	if (!stream->end.capture)
		return CU_STREAM_CAPTURE_STATUS_NONE;
	return stream->end.capture->is_broken ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
					      : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult do_cuStreamIsCapturing(const cuStreamIsCapturing_p *p)
{
	struct sim_stream *stream;
	CUresult result = drv_stream(p->hStream, &stream);

	if (!result)
		*p->captureStatus = capture_status(stream);
	return result;
}

/* The newest form; the older ones request less. */
CUresult do_cuStreamGetCaptureInfo_v3(const cuStreamGetCaptureInfo_v3_p *p)
{
	struct sim_stream *stream;
	CUresult result = drv_stream(p->hStream, &stream);

	if (result)
		return result;
	*p->captureStatus_out = capture_status(stream);
	if (*p->captureStatus_out != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return CUDA_SUCCESS;
	if (p->id_out)
		*p->id_out = stream->end.capture->id;
	if (p->graph_out)
		*p->graph_out = (CUgraph)stream->end.capture->graph;
	if (p->dependencies_out)
		*p->dependencies_out = (const CUgraphNode *)stream->end.after;
	if (p->edgeData_out)
		*p->edgeData_out = NULL;
	if (p->numDependencies_out)
		*p->numDependencies_out = stream->end.n_after;
	return CUDA_SUCCESS;
}

CUresult do_cuStreamGetCaptureInfo_v2(const cuStreamGetCaptureInfo_v2_p *p)
{
	return do_cuStreamGetCaptureInfo_v3(&(cuStreamGetCaptureInfo_v3_p){
		.hStream = p->hStream,
		.captureStatus_out = p->captureStatus_out,
		.id_out = p->id_out,
		.graph_out = p->graph_out,
		.dependencies_out = p->dependencies_out,
		.numDependencies_out = p->numDependencies_out,
	});
}

CUresult do_cuStreamGetCaptureInfo(const cuStreamGetCaptureInfo_p *p)
{
	return do_cuStreamGetCaptureInfo_v3(&(cuStreamGetCaptureInfo_v3_p){
		.hStream = p->hStream,
		.captureStatus_out = p->captureStatus_out,
		.id_out = p->id_out,
	});
}

CUresult do_cuStreamUpdateCaptureDependencies_v2(const cuStreamUpdateCaptureDependencies_v2_p *p)
{
	struct sim_stream *stream;
	CUresult result = drv_stream(p->hStream, &stream);

	if (!result && !stream->end.capture)
		result = CUDA_ERROR_ILLEGAL_STATE;
	if (result)
		return result;
	sim_lock();
	sim_capture_set_after(stream, (struct sim_graph_node *const *)p->dependencies,
			      p->numDependencies, p->flags != CU_STREAM_SET_CAPTURE_DEPENDENCIES);
	sim_unlock();
	return CUDA_SUCCESS;
}

CUresult do_cuStreamUpdateCaptureDependencies(const cuStreamUpdateCaptureDependencies_p *p)
{
	return do_cuStreamUpdateCaptureDependencies_v2(&(cuStreamUpdateCaptureDependencies_v2_p){
		.hStream = p->hStream,
		.dependencies = p->dependencies,
		.numDependencies = p->numDependencies,
		.flags = p->flags,
	});
}
