/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* CUPTI's records as events, on the thread that delivers them. */
#include "collectors/cuda/cupti/cuda_records.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "agent/process/process.h"
#include "agent/producer/producer.h"
#include "agent/producer/label.h"
#include "agent/wire/event.h"
#include "collectors/cuda/counters/cuda_counters.h"
#include "collectors/cuda/cuda.h"
#include "collectors/cuda/cupti/cuda_clock.h"
#include "shim/cuda/cupti.h"

/* The time of an activity, in CLOCK_MONOTONIC. */
struct span {
	uint64_t begin_ns, duration_ns;
};

/* Returns 0 if the record has no times: it had not ended, or could not be measured. */
static int span_of(uint64_t start, uint64_t end, struct span *span)
{
	if (!start || end < start)
		return 0;
	return torsh_cuda_clock_span(start, end, &span->begin_ns, &span->duration_ns);
}

static uint32_t name_of(const char *name)
{
	return name ? torsh_label(name, strlen(name)) : 0;
}

/* Names of recent kernels; a name stays valid while its buffer's records are processed. */
#define NAMES 64u

struct names {
	const char *names[NAMES];
	uint32_t labels[NAMES];
};

static uint32_t kernel_label(struct names *names, const char *name)
{
	/* Names begin at any byte; mangled ones are a few dozen apart. */
	uint32_t i = (uint32_t)((uintptr_t)name * UINT64_C(0x9e3779b97f4a7c15) >> 58) % NAMES;

	if (names->names[i] != name) {
		names->labels[i] = name_of(name);
		names->names[i] = name;
	}
	return names->labels[i];
}

static bool take_kernel(const struct cupti_kernel *kernel, struct names *names, struct event *event)
{
	struct span span;

	torsh_cuda_counters_kernel(kernel);
	if (!span_of(kernel->start, kernel->end, &span))
		return false;
	event->id = EVENT_KERNEL;
	event->kernel = (struct event_kernel){
		.name = kernel_label(names, kernel->name),
		.begin = span.begin_ns,
		.duration_ns = span.duration_ns,
		.correlation = kernel->correlation,
		.device = kernel->device,
		.context = kernel->context,
		.stream = kernel->stream,
		.graph = kernel->graph,
		.node = kernel->node,
		EVENT_SHAPE(kernel->grid, kernel->block),
		.registers = kernel->registers,
		.static_shared_bytes = kernel->static_shared_bytes,
		.dynamic_shared_bytes = kernel->dynamic_shared_bytes,
		.local_bytes = kernel->local_bytes_a_thread,
	};
	return true;
}

/* The common fields of the records of a copy and of one between devices. */
#define COPY_OF(record)                                                                            \
	{                                                                                          \
		.bytes = (record)->bytes, .begin = span.begin_ns, .duration_ns = span.duration_ns, \
		.correlation = (record)->correlation, .device = (record)->device,                  \
		.context = (record)->context, .stream = (record)->stream,                          \
		.graph = (record)->graph, .node = (record)->node, .kind = (record)->copy_kind,     \
		.from = (record)->from, .to = (record)->to,                                        \
		.is_async = (record)->flags & CUPTI_FLAG_ASYNC, .to_device = (record)->device,     \
	}

static bool take_copy(const struct cupti_copy *copy, struct event *event)
{
	struct span span;

	if (!span_of(copy->start, copy->end, &span))
		return false;
	event->id = EVENT_COPY;
	event->copy = (struct event_copy)COPY_OF(copy);
	return true;
}

static bool take_peer_copy(const struct cupti_peer_copy *copy, struct event *event)
{
	struct span span;

	if (!span_of(copy->start, copy->end, &span))
		return false;
	event->id = EVENT_COPY;
	event->copy = (struct event_copy)COPY_OF(copy);
	event->copy.to_device = copy->to_device;
	return true;
}

#undef COPY_OF

static bool take_memset(const struct cupti_memset *memset, struct event *event)
{
	struct span span;

	if (!span_of(memset->start, memset->end, &span))
		return false;
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
	return true;
}

static bool take_wait(const struct cupti_wait *wait, struct event *event)
{
	struct span span;

	if (!span_of(wait->start, wait->end, &span))
		return false;
	event->id = EVENT_DEVICE_WAIT;
	event->device_wait = (struct event_device_wait){
		.kind = (uint32_t)wait->wait,
		.begin = span.begin_ns,
		.duration_ns = span.duration_ns,
		.correlation = wait->correlation,
		.context = wait->context,
		.stream = wait->stream,
		.cuda_event = wait->event,
	};
	return true;
}

static bool take_overhead(const struct cupti_overhead *overhead, struct event *event)
{
	struct span span;

	if (!span_of(overhead->start, overhead->end, &span))
		return false;
	event->id = EVENT_DEVICE_OVERHEAD;
	event->device_overhead =
		(struct event_device_overhead){.kind = (uint32_t)overhead->overhead,
					       .begin = span.begin_ns,
					       .duration_ns = span.duration_ns};
	return true;
}

/* In nvidia-smi's form. */
static uint32_t uuid_label(const uint8_t *uuid)
{
	static const char digits[] = "0123456789abcdef";
	char buffer[48] = "GPU-";
	size_t n = 4;

	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			buffer[n++] = '-';
		buffer[n++] = digits[uuid[i] >> 4];
		buffer[n++] = digits[uuid[i] & 15];
	}
	return torsh_label(buffer, n);
}

static bool take_device(const struct cupti_device *device, struct event *event)
{
	event->id = EVENT_DEVICE;
	event->device = (struct event_device){
		.device = device->device,
		.name = name_of(device->name),
		.uuid = uuid_label(device->uuid),
		.capability_major = device->capability_major,
		.capability_minor = device->capability_minor,
		.memory_bytes = device->memory_bytes,
		.memory_bandwidth = device->bandwidth_kb * 1000,
		.l2_bytes = device->l2_bytes,
		.clock_khz = device->clock_khz,
		.multiprocessors = device->multiprocessors,
		.warp_threads = device->warp_threads,
		.multiprocessor_warps = device->multiprocessor_warps,
		.multiprocessor_blocks = device->multiprocessor_blocks,
		.multiprocessor_shared_bytes = device->multiprocessor_shared_bytes,
		.multiprocessor_registers = device->multiprocessor_registers,
		.block_threads = device->block_threads,
		.block_shared_bytes = device->block_shared_bytes,
		.block_registers = device->block_registers,
	};
	return true;
}

static bool take_context(const struct cupti_context *context, struct event *event)
{
	event->id = EVENT_DEVICE_CONTEXT;
	event->device_context = (struct event_device_context){.context = context->context,
							      .device = context->device,
							      .null_stream = context->null_stream};
	return true;
}

static bool take_stream(const struct cupti_stream *stream, struct event *event)
{
	event->id = EVENT_DEVICE_STREAM;
	event->device_stream = (struct event_device_stream){
		.context = stream->context,
		.stream = stream->stream,
		.priority = (int32_t)stream->priority,
		.flag = stream->flag,
	};
	return true;
}

/* Returns 1, 0 if its times are invalid, or -1: a kind that the agent did not enable. */
static int take_record(const struct cupti_record *record, struct names *names, struct event *event)
{
	switch (record->kind) {
	case CUPTI_KIND_KERNEL:
		return take_kernel((const struct cupti_kernel *)record, names, event);
	case CUPTI_KIND_COPY:
		return take_copy((const struct cupti_copy *)record, event);
	case CUPTI_KIND_PEER_COPY:
		return take_peer_copy((const struct cupti_peer_copy *)record, event);
	case CUPTI_KIND_MEMSET:
		return take_memset((const struct cupti_memset *)record, event);
	case CUPTI_KIND_WAIT:
		return take_wait((const struct cupti_wait *)record, event);
	case CUPTI_KIND_OVERHEAD:
		return take_overhead((const struct cupti_overhead *)record, event);
	case CUPTI_KIND_DEVICE:
		return take_device((const struct cupti_device *)record, event);
	case CUPTI_KIND_CONTEXT:
		return take_context((const struct cupti_context *)record, event);
	case CUPTI_KIND_STREAM:
		return take_stream((const struct cupti_stream *)record, event);
	default:
		return -1;
	}
}

void torsh_cuda_take_records(uint8_t *buffer, size_t n_valid)
{
	struct cupti_record *record = NULL;
	uint64_t n_taken = 0, n_invalid = 0;
	struct names names = {0};
	int status = CUPTI_END_OF_BUFFER;
	int saved = errno;
	struct producer *producer = n_valid ? torsh_producer_enter() : NULL;

	if (n_valid && !producer)
		torsh_cuda_lose(&torsh_cuda_losses.without_room, 1);
	while (producer &&
	       !(status = torsh_cupti.ActivityGetNextRecord(buffer, n_valid, &record))) {
		struct event event;
		int result = take_record(record, &names, &event);

		if (result > 0)
			torsh_producer_event(producer, &event, NULL);
		n_taken += result > 0;
		n_invalid += result == 0;
	}
	if (producer)
		torsh_producer_leave(producer);
	/* The rest of the buffer can't be read; its number of records is unknown. */
	n_invalid += status != CUPTI_END_OF_BUFFER;
	atomic_fetch_add_explicit(&torsh_cuda_losses.records, n_taken, memory_order_relaxed);
	atomic_fetch_add_explicit(&torsh_cuda_losses.invalid, n_invalid, memory_order_relaxed);
	errno = saved;
}
