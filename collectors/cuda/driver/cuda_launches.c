/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "collectors/cuda/driver/cuda_launches.h"

#include <stdatomic.h>
#include <string.h>

#include "agent/process/config.h"
#include "agent/process/process.h"
#include "agent/process/text_buffer.h"
#include "agent/producer/producer.h"
#include "agent/producer/label.h"
#include "agent/wire/event.h"
#include "collectors/cuda/cuda.h"
#include "collectors/cuda/driver/cuda_batches.h"
#include "shim/find_text.h"

uint32_t torsh_cuda_label(const char *text)
{
	return text ? torsh_label(text, strlen(text)) : 0;
}

/*
 * ---- queries to the driver ---------------------------------------------------------------------
 */

static const char *name_of(const struct driver_work *work)
{
	const char *name = NULL;

	if (work->what != DRIVER_KERNEL)
		return NULL;
	if (torsh_driver.cuFuncGetName && !torsh_driver.cuFuncGetName(&name, work->function) &&
	    name)
		return name;
	if (torsh_driver.cuKernelGetName && !torsh_driver.cuKernelGetName(&name, work->function))
		return name;
	return NULL;
}

static uint32_t attribute_of(const struct driver_work *work, int attribute)
{
	int value = 0;

	if (work->what != DRIVER_KERNEL ||
	    torsh_driver.cuFuncGetAttribute(&value, attribute, work->function) || value < 0)
		return 0;
	return (uint32_t)value;
}

static uint32_t direction_of(const struct driver_work *work)
{
	if (work->what != DRIVER_COPY || work->direction != COPY_UNKNOWN)
		return work->direction;
	return torsh_driver_direction(torsh_cuda_memory_at(work->from),
				      torsh_cuda_memory_at(work->to));
}

void torsh_cuda_describe(struct device_pair *pair)
{
	struct driver_work *work = &pair->work;

	if (work->batch)
		torsh_cuda_describe_batch(work);
	else
		work->direction = direction_of(work);
	work->is_async = work->is_async || torsh_find_text(work->api, "Async");
	pair->name = torsh_cuda_label(name_of(work));
	pair->registers = attribute_of(work, DRIVER_FUNCTION_REGISTERS);
	pair->static_shared_bytes = attribute_of(work, DRIVER_FUNCTION_SHARED_BYTES);
	pair->local_bytes = attribute_of(work, DRIVER_FUNCTION_LOCAL_BYTES);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Not inlined: the event isn't on the stack while that of the call is sent. */
static __attribute__((noinline)) void
put_launch(struct producer *producer, const struct driver_work *work, int result, uint64_t stamp)
{
	const struct event event = {
		.id = EVENT_LAUNCH,
		.launch =
			{
				.api = work->label,
				.correlation = work->correlation,
				.result = result,
				.begin = work->begin_ns,
				.duration_ns = work->end_ns - work->begin_ns,
				.flags = torsh_config.operator_stacks ? CALL_HAS_STACK : 0,
			},
	};

	torsh_producer_event_at(producer, &event, stamp);
}

void torsh_cuda_send_launch(const struct driver_work *work, int result, const void *frame)
{
	struct producer *producer = torsh_producer_enter();
	uint64_t stamp;

	if (!producer)
		return;
	if (torsh_producer_hold(producer, torsh_config.operator_stacks ? frame : NULL, &stamp))
		put_launch(producer, work, result, stamp);
	torsh_producer_leave(producer);
}

static uint32_t submission_what(enum driver_what what)
{
	static const enum submission_what whats[] = {
		[DRIVER_KERNEL] = SUBMISSION_KERNEL,
		[DRIVER_COPY] = SUBMISSION_COPY,
		[DRIVER_MEMSET] = SUBMISSION_MEMSET,
		[DRIVER_GRAPH] = SUBMISSION_GRAPH,
	};

	return whats[what];
}

static struct event work_event(const struct device_pair *pair)
{
	const struct driver_work *work = &pair->work;

	return (struct event){
		.id = EVENT_SUBMISSION,
		.submission =
			{
				.name = pair->name,
				.what = submission_what(work->what),
				.correlation = work->correlation,
				.begin = work->begin_ns,
				.is_placed = pair->location.context != 0,
				.device = pair->location.device,
				.context = pair->location.context,
				.stream = pair->location.stream,
				.kind = work->what == DRIVER_COPY ? work->direction : 0,
				.bytes = work->bytes,
				EVENT_SHAPE(work->grid, work->block),
				.dynamic_shared_bytes = work->shared_bytes,
			},
	};
}

void torsh_cuda_send_untimed(const struct device_pair *pair, uint32_t reason)
{
	struct event event = work_event(pair);

	event.submission.reason = reason;
	torsh_cuda_send(&event);
}

static struct event kernel_event(const struct device_pair *pair)
{
	const struct driver_work *work = &pair->work;

	return (struct event){
		.id = EVENT_KERNEL,
		.kernel =
			{
				.name = pair->name,
				EVENT_SHAPE(work->grid, work->block),
				.registers = pair->registers,
				.static_shared_bytes = pair->static_shared_bytes,
				.dynamic_shared_bytes = work->shared_bytes,
				.local_bytes = pair->local_bytes,
			},
	};
}

static struct event copy_event(const struct device_pair *pair)
{
	return (struct event){
		.id = EVENT_COPY,
		.copy =
			{
				.bytes = pair->work.bytes,
				.kind = pair->work.direction,
				.is_async = pair->work.is_async != 0,
				.to_device = pair->location.device,
			},
	};
}

static struct event memset_event(const struct device_pair *pair)
{
	return (struct event){
		.id = EVENT_MEMSET,
		.memset =
			{
				.bytes = pair->work.bytes,
				.value = pair->work.value,
				.is_async = pair->work.is_async != 0,
			},
	};
}

/* Set the location and times of the event, of any kind. */
#define LOCATE(field)                                          \
	do {                                                   \
		(field)->begin = begin_ns;                     \
		(field)->duration_ns = duration_ns;            \
		(field)->correlation = pair->work.correlation; \
		(field)->device = pair->location.device;       \
		(field)->context = pair->location.context;     \
		(field)->stream = pair->location.stream;       \
	} while (0)

void torsh_cuda_send_timed(const struct device_pair *pair, uint64_t begin_ns, uint64_t duration_ns)
{
	struct event event;

	switch (pair->work.what) {
	case DRIVER_KERNEL:
		event = kernel_event(pair);
		LOCATE(&event.kernel);
		break;
	case DRIVER_COPY:
		event = copy_event(pair);
		LOCATE(&event.copy);
		break;
	case DRIVER_MEMSET:
		event = memset_event(pair);
		LOCATE(&event.memset);
		break;
	default:
		event = work_event(pair);
		event.submission.is_timed = 1;
		LOCATE(&event.submission);
		break;
	}
	torsh_cuda_send(&event);
	atomic_fetch_add_explicit(&torsh_cuda_losses.records, 1, memory_order_relaxed);
}

#undef LOCATE

/* ---- unrecorded work ------------------------------------------------------------------------- */

/* The name of the first one; others are likely of the same kind. */
static char not_seen[64];
static _Atomic uint32_t has_not_seen;

void torsh_cuda_unrecorded(const char *name)
{
	if (strlen(name) < sizeof(not_seen) &&
	    !atomic_exchange_explicit(&has_not_seen, 1, memory_order_relaxed))
		strcpy(not_seen, name);
}

void torsh_cuda_send_unrecorded(void)
{
	char buffer[192];
	struct text note = TEXT_IN(buffer);

	if (!*not_seen)
		return;
	torsh_text_put(
		&note,
		"cuda: calls of functions that this agent does not support are not recorded: ");
	torsh_text_put(&note, not_seen);
	torsh_channel_note(&torsh_process->channel, buffer);
}
