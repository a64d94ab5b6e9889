/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Records, in the layout of the version that SIMCUDA_CUPTI_VERSION names. Each version's struct
 * begins with the one before, so that the newest is filled and its first bytes are given out:
 * layouts.c checks that against the headers.
 */
#include "test/simcuda/cupti/cupti.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "test/simcuda/cupti/layouts.h"
#include "test/simcuda/engine/clock.h"
#include "test/simcuda/engine/config.h"

/* Looked up once: nothing is recorded in a forked child. */
static uint32_t process_id(void)
{
	static _Atomic uint32_t id;

	if (!id)
		id = (uint32_t)getpid();
	return id;
}

/* As CUPTI writes a stream that there is none of. */
enum { NO_STREAM = UINT32_MAX };

static void append(const void *record)
{
	cupti_append(record, cupti_record_bytes(record));
}

/* Of what was forced out before its end. */
static uint64_t end_of(const struct cupti_happening *happening)
{
	return happening->is_unfinished ? 0 : cupti_stamp_of(happening->op.end_ns);
}

/* What tools have met: kernels without times, and with times of another clock. */
static void spoil_times(uint64_t *start, uint64_t *end, const struct sim_op *op)
{
	static _Atomic int n_kernels;
	int every = sim_config()->untimed_kernels;

	if (every && ++n_kernels % every == 0) {
		*start = *end = 0;
	} else if (cupti_mixes_clocks()) {
		*start = sim_wall_of(op->start_ns);
		*end = sim_wall_of(op->end_ns);
	}
}

static void record_kernel(const struct cupti_happening *happening)
{
	const struct sim_op *op = &happening->op;
	const struct sim_kernel_work *kernel = &op->work.kernel;
	newest_kernel record = {
		.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
		.registersPerThread = kernel->registers,
		.start = cupti_stamp_of(op->start_ns),
		.end = end_of(happening),
		.deviceId = (uint32_t)op->device->ordinal,
		.contextId = op->context->id,
		.streamId = op->stream_id,
		.gridX = (int32_t)kernel->grid[0],
		.gridY = (int32_t)kernel->grid[1],
		.gridZ = (int32_t)kernel->grid[2],
		.blockX = (int32_t)kernel->block[0],
		.blockY = (int32_t)kernel->block[1],
		.blockZ = (int32_t)kernel->block[2],
		.staticSharedMemory = (int32_t)kernel->static_shared_bytes,
		.dynamicSharedMemory = (int32_t)kernel->dynamic_shared_bytes,
		.localMemoryPerThread = kernel->local_bytes,
		.correlationId = (uint32_t)op->correlation,
		.name = kernel->name,
		.graphNodeId = op->graph_node,
		.graphId = op->graph_id,
		.clusterX = kernel->cluster[0],
		.clusterY = kernel->cluster[1],
		.clusterZ = kernel->cluster[2],
		.launchType = kernel->is_cooperative
				      ? CUPTI_ACTIVITY_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE
				      : CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR,
		.sharedMemoryExecuted = kernel->dynamic_shared_bytes + kernel->static_shared_bytes,
	};

	spoil_times(&record.start, &record.end, op);
	record.completed = record.end;
	append(&record);
}

static void record_copy(const struct cupti_happening *happening)
{
	const struct sim_op *op = &happening->op;
	const struct sim_copy_work *copy = &op->work.copy;
	newest_copy record = {
		.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
		.copyKind = (uint8_t)sim_copy_kind(copy),
		.srcKind = (uint8_t)copy->from_kind,
		.dstKind = (uint8_t)copy->to_kind,
		.flags = copy->is_async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0,
		.bytes = sim_copy_bytes(copy),
		.start = cupti_stamp_of(op->start_ns),
		.end = end_of(happening),
		.deviceId = (uint32_t)op->device->ordinal,
		.contextId = op->context->id,
		.streamId = op->stream_id,
		.correlationId = (uint32_t)op->correlation,
		.graphNodeId = op->graph_node,
		.graphId = op->graph_id,
	};

#if SINCE_12_8
	record.copyCount = 1;
#endif
	append(&record);
}

static void record_peer_copy(const struct cupti_happening *happening)
{
	const struct sim_op *op = &happening->op;
	const struct sim_copy_work *copy = &op->work.copy;
	CUpti_ActivityMemcpyPtoP4 record = {
		.kind = CUPTI_ACTIVITY_KIND_MEMCPY2,
		.copyKind = (uint8_t)sim_copy_kind(copy),
		.srcKind = (uint8_t)copy->from_kind,
		.dstKind = (uint8_t)copy->to_kind,
		.flags = copy->is_async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0,
		.bytes = sim_copy_bytes(copy),
		.start = cupti_stamp_of(op->start_ns),
		.end = end_of(happening),
		.deviceId = (uint32_t)op->device->ordinal,
		.contextId = op->context->id,
		.streamId = op->stream_id,
		.srcDeviceId = (uint32_t)copy->from_device,
		.dstDeviceId = (uint32_t)copy->to_device,
		.correlationId = (uint32_t)op->correlation,
		.graphNodeId = op->graph_node,
		.graphId = op->graph_id,
	};

	append(&record);
}

static void record_memset(const struct cupti_happening *happening)
{
	const struct sim_op *op = &happening->op;
	const struct sim_memset_work *set = &op->work.memset;
	CUpti_ActivityMemset4 record = {
		.kind = CUPTI_ACTIVITY_KIND_MEMSET,
		.value = set->value,
		.bytes = set->width * set->height,
		.start = cupti_stamp_of(op->start_ns),
		.end = end_of(happening),
		.deviceId = (uint32_t)op->device->ordinal,
		.contextId = op->context->id,
		.streamId = op->stream_id,
		.correlationId = (uint32_t)op->correlation,
		.flags = set->is_async ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0,
		.memoryKind = (uint16_t)set->kind,
		.graphNodeId = op->graph_node,
		.graphId = op->graph_id,
	};

	append(&record);
}

static void record_event(const struct sim_op *op)
{
	newest_event record = {
		.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT,
		.correlationId = (uint32_t)op->correlation,
		.contextId = op->context->id,
		.streamId = op->stream_id,
		.eventId = op->event_id,
	};

#if SINCE_12_8
	record.deviceId = (uint32_t)op->device->ordinal;
	record.deviceTimestamp = cupti_stamp_of(op->end_ns);
	record.cudaEventSyncId = op->event_sync_id;
#endif
	append(&record);
}

static void record_graph(const struct cupti_happening *happening)
{
	const struct sim_op *op = &happening->op;
	newest_graph record = {
		.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
		.correlationId = (uint32_t)op->correlation,
		.start = cupti_stamp_of(op->graph_start_ns ? op->graph_start_ns : op->start_ns),
		.end = end_of(happening),
		.deviceId = (uint32_t)op->device->ordinal,
		.graphId = op->graph_id,
		.contextId = op->context->id,
		.streamId = op->stream_id,
	};

#if SINCE_12_8
	record.endDeviceId = (uint32_t)op->device->ordinal;
	record.endContextId = op->context->id;
#endif
	append(&record);
}

static void record_op(const struct cupti_happening *happening)
{
	const struct sim_op *op = &happening->op;

	switch (op->work.kind) {
	case SIM_KERNEL:
		record_kernel(happening);
		break;
	case SIM_COPY:
		if (sim_copy_kind(&op->work.copy) == SIM_COPY_BETWEEN_DEVICES)
			record_peer_copy(happening);
		else
			record_copy(happening);
		break;
	case SIM_MEMSET:
		record_memset(happening);
		break;
	case SIM_RECORD:
		record_event(op);
		break;
	default:
		record_graph(happening);
	}
}

static void record_memory(const struct sim_memory_event *event)
{
	newest_memory record = {
		.kind = CUPTI_ACTIVITY_KIND_MEMORY2,
		.memoryOperationType = event->is_release
					       ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
					       : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION,
		.memoryKind = (CUpti_ActivityMemoryKind)event->kind,
		.correlationId = (uint32_t)event->correlation,
		.address = event->address,
		.bytes = event->bytes,
		.timestamp = cupti_stamp_of(event->t_ns),
		.processId = process_id(),
		.deviceId = (uint32_t)event->device,
		.contextId = event->context,
		.streamId = event->is_async ? event->stream : NO_STREAM,
		.isAsync = event->is_async,
	};

	if (event->pool) {
		record.memoryPoolConfig.memoryPoolType = CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
		record.memoryPoolConfig.address = event->pool;
		record.memoryPoolConfig.releaseThreshold = event->pool_threshold;
		record.memoryPoolConfig.pool.size = event->pool_reserved_bytes;
		record.memoryPoolConfig.utilizedSize = event->pool_used_bytes;
	}
	append(&record);
}

static void record_wait(const struct sim_wait_event *event)
{
	newest_wait record = {
		.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
		.type = (CUpti_ActivitySynchronizationType)event->kind,
		.start = cupti_stamp_of(event->begin_ns),
		.end = cupti_stamp_of(event->end_ns),
		.correlationId = (uint32_t)event->correlation,
		.contextId = event->context,
		.streamId = event->stream,
		.cudaEventId = event->event,
	};

	append(&record);
}

void cupti_record(const struct cupti_happening *happening)
{
	switch (happening->what) {
	case HAPPENED_OP:
		record_op(happening);
		break;
	case HAPPENED_MEMORY:
		record_memory(&happening->memory);
		break;
	case HAPPENED_WAIT:
		record_wait(&happening->wait);
		break;
	}
}

static uint32_t recorded_thread(void)
{
	CUpti_ActivityThreadIdType type;

	do_cuptiGetThreadIdType(&type);
	return type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM ? sim_thread_id()
							    : (uint32_t)(uintptr_t)pthread_self();
}

void cupti_record_call(const struct sim_call *call, uint64_t begin, uint64_t end)
{
	bool is_driver = call->api->domain == SIM_DOMAIN_DRIVER;
	CUpti_ActivityAPI record = {
		.kind = is_driver ? CUPTI_ACTIVITY_KIND_DRIVER : CUPTI_ACTIVITY_KIND_RUNTIME,
		.cbid = call->api->cbid,
		.start = begin,
		.end = end,
		.processId = process_id(),
		.threadId = recorded_thread(),
		.correlationId = (uint32_t)call->correlation,
		.returnValue = (uint32_t)call->result,
	};

	cupti_record_external_ids(record.correlationId);
	append(&record);
}

size_t cupti_record_bytes(const CUpti_Activity *record)
{
	CUpti_ActivityKind kind;

	/* A client's buffer may be askew, though it may not. */
	memcpy(&kind, record, sizeof(kind));
	return layout_bytes(kind, layout_version());
}
