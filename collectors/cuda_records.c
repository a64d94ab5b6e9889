/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* CUPTI's records as events, in whatever thread CUPTI hands them over. */
#include <errno.h>
#include <string.h>

#include "agent/label.h"
#include "agent/process.h"
#include "collectors/cuda.h"
#include "collectors/cuda_counters.h"
#include "shim/cupti.h"

/* When something ran, on our clock. */
struct span {
	uint64_t begin_ns, duration_ns;
};

/* Returns 0 where the record has no times: what had not ended, or could not be measured. */
static int span_of(uint64_t start, uint64_t end, struct span *span)
{
	if (!start || end < start)
		return 0;
	*span = (struct span){.begin_ns = torsh_cuda_clock_moment(start),
			      .duration_ns = torsh_cuda_clock_duration(start, end)};
	return span->begin_ns != 0;
}

static uint32_t name_of(const char *name)
{
	return name ? torsh_label(name, strlen(name)) : 0;
}

static int take_kernel(const struct cupti_kernel *kernel, struct event *event)
{
	struct span span;

	torsh_cuda_counters_kernel(kernel);
	if (!span_of(kernel->start, kernel->end, &span))
		return 0;
	event->id = EVENT_KERNEL;
	event->kernel = (struct event_kernel){
		.name = name_of(kernel->name),
		.begin = span.begin_ns,
		.duration_ns = span.duration_ns,
		.correlation = kernel->correlation,
		.device = kernel->device,
		.context = kernel->context,
		.stream = kernel->stream,
		.graph = kernel->graph,
		.node = kernel->node,
		.grid_x = kernel->grid[0],
		.grid_y = kernel->grid[1],
		.grid_z = kernel->grid[2],
		.block_x = kernel->block[0],
		.block_y = kernel->block[1],
		.block_z = kernel->block[2],
		.registers = kernel->registers,
		.static_shared_bytes = kernel->static_shared_bytes,
		.dynamic_shared_bytes = kernel->dynamic_shared_bytes,
		.local_bytes = kernel->local_bytes_a_thread,
	};
	return 1;
}

static int take_copy(const struct cupti_copy *copy, struct event *event)
{
	struct span span;

	if (!span_of(copy->start, copy->end, &span))
		return 0;
	event->id = EVENT_COPY;
	event->copy = (struct event_copy){
		.bytes = copy->bytes,
		.begin = span.begin_ns,
		.duration_ns = span.duration_ns,
		.correlation = copy->correlation,
		.device = copy->device,
		.context = copy->context,
		.stream = copy->stream,
		.graph = copy->graph,
		.node = copy->node,
		.kind = copy->copy_kind,
		.from = copy->from,
		.to = copy->to,
		.is_async = copy->flags & CUPTI_FLAG_ASYNC,
		.to_device = copy->device,
	};
	return 1;
}

static int take_peer_copy(const struct cupti_peer_copy *copy, struct event *event)
{
	struct span span;

	if (!span_of(copy->start, copy->end, &span))
		return 0;
	event->id = EVENT_COPY;
	event->copy = (struct event_copy){
		.bytes = copy->bytes,
		.begin = span.begin_ns,
		.duration_ns = span.duration_ns,
		.correlation = copy->correlation,
		.device = copy->device,
		.context = copy->context,
		.stream = copy->stream,
		.graph = copy->graph,
		.node = copy->node,
		.kind = copy->copy_kind,
		.from = copy->from,
		.to = copy->to,
		.is_async = copy->flags & CUPTI_FLAG_ASYNC,
		.to_device = copy->to_device,
	};
	return 1;
}

static int take_memset(const struct cupti_memset *memset, struct event *event)
{
	struct span span;

	if (!span_of(memset->start, memset->end, &span))
		return 0;
	event->id = EVENT_MEMSET;
	event->memset = (struct event_memset){
		.bytes = memset->bytes,
		.begin = span.begin_ns,
		.duration_ns = span.duration_ns,
		.correlation = memset->correlation,
		.device = memset->device,
		.context = memset->context,
		.stream = memset->stream,
		.graph = memset->graph,
		.node = memset->node,
		.value = memset->value,
		.to = memset->memory,
		.is_async = memset->flags & CUPTI_FLAG_ASYNC,
	};
	return 1;
}

/* Returns 1, 0 where its times are none, or -1: it is of a kind that was not asked for here. */
static int take_record(const struct cupti_record *record, struct event *event)
{
	switch (record->kind) {
	case CUPTI_KIND_KERNEL:
		return take_kernel((const struct cupti_kernel *)record, event);
	case CUPTI_KIND_COPY:
		return take_copy((const struct cupti_copy *)record, event);
	case CUPTI_KIND_PEER_COPY:
		return take_peer_copy((const struct cupti_peer_copy *)record, event);
	case CUPTI_KIND_MEMSET:
		return take_memset((const struct cupti_memset *)record, event);
	default:
		return -1;
	}
}

void torsh_cuda_take_records(uint8_t *buffer, size_t n_valid)
{
	struct cupti_record *record = NULL;
	uint64_t n_taken = 0, n_invalid = 0;
	int saved = errno;
	struct flow *flow = n_valid ? torsh_flow_enter() : NULL;

	if (n_valid && !flow)
		atomic_fetch_add_explicit(&torsh_cuda_losses.without_room, 1, memory_order_relaxed);
	while (flow && !torsh_cupti.ActivityGetNextRecord(buffer, n_valid, &record)) {
		struct event event;
		int result = take_record(record, &event);

		if (result > 0)
			torsh_flow_event(flow, &event, NULL);
		n_taken += result > 0;
		n_invalid += result == 0;
	}
	if (flow)
		torsh_flow_leave(flow);
	atomic_fetch_add_explicit(&torsh_cuda_losses.records, n_taken, memory_order_relaxed);
	atomic_fetch_add_explicit(&torsh_cuda_losses.invalid, n_invalid, memory_order_relaxed);
	errno = saved;
}
