/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/whatif/memory_trace.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/live_table.h"
#include "tools/base/die.h"

/* The state of a pass for one device. */
struct trace_state {
	struct live_table live; /* site: index of the block */
	struct tensor_sums last; /* after the previous event */
	bool has_last;
};

struct walker {
	struct memory_traces *traces;
	const struct batch *batch;
	const struct prepass *prepass;
	struct trace_state *states; /* parallel to traces->items */
	size_t states_room;
	uint64_t at_ns; /* of the event */
};

void torsh_memory_trace_add(struct memory_trace *trace, const struct trace_change *change)
{
	trace->changes = torsh_array_reserve(trace->changes, trace->n_changes, &trace->changes_room,
					     sizeof(*trace->changes));
	trace->changes[trace->n_changes++] = *change;
}

uint32_t torsh_memory_trace_add_block(struct memory_trace *trace, const struct trace_block *block)
{
	trace->blocks = torsh_array_reserve(trace->blocks, trace->n_blocks, &trace->blocks_room,
					    sizeof(*trace->blocks));
	trace->blocks[trace->n_blocks] = *block;
	return (uint32_t)trace->n_blocks++;
}

/* Returns how many threads the device runs at once; 0: unknown. */
static uint64_t threads_of(const struct prepass_process *of, uint32_t device)
{
	const struct event_device *found =
		of ? torsh_device_list_find(&of->devices, device & UINT8_MAX) : NULL;

	return found ? (uint64_t)found->multiprocessors * found->multiprocessor_warps *
			       found->warp_threads
		     : 0;
}

static size_t find_device(struct walker *walker, const struct recorded_process *process,
			  uint32_t device)
{
	struct memory_traces *traces = walker->traces;

	for (size_t i = 0; i < traces->n; i++) {
		if (traces->items[i].process == process && traces->items[i].device == device)
			return i;
	}
	traces->items = torsh_array_reserve(traces->items, traces->n, &traces->n_room,
					    sizeof(*traces->items));
	walker->states = torsh_array_reserve(walker->states, traces->n, &walker->states_room,
					     sizeof(*walker->states));
	traces->items[traces->n] = (struct memory_trace){
		.process = process,
		.device = device,
		.n_threads = threads_of(torsh_prepass_of(walker->prepass, process), device)};
	walker->states[traces->n] = (struct trace_state){0};
	torsh_live_create(&walker->states[traces->n].live);
	return traces->n++;
}

static void add_change(struct walker *walker, struct memory_trace *trace, enum trace_kind kind,
		       uint32_t block)
{
	torsh_memory_trace_add(
		trace,
		&(struct trace_change){.at_ns = walker->at_ns, .block = block, .kind = kind});
}

static const struct span *outermost(const struct span *span)
{
	for (const struct span *outer; (outer = torsh_span_outer_operator(span));)
		span = outer;
	return span;
}

static struct trace_block block_of(const struct walker *walker, const struct memory_trace *trace,
				   const struct timeline_event *event, struct span *innermost)
{
	const struct span *span = torsh_span_attributed(innermost);
	const struct allocation allocation = {
		.batch = walker->batch,
		.innermost = innermost,
		.block_bytes = event->event.tensor.bytes,
		.is_first = innermost && !innermost->self_allocated_bytes,
		.n_threads = trace->n_threads,
	};
	struct allocation_size size = torsh_allocation_size(&allocation);

	if (innermost)
		innermost->self_allocated_bytes += event->event.tensor.bytes;
	return (struct trace_block){
		.recorded_bytes = event->event.tensor.bytes,
		.bytes = size.bytes,
		.part = size.part,
		.reduction = size.reduction,
		.is_parts = size.is_parts,
		.operator_name = span ? torsh_span_name(span) : NULL,
		.module = span ? torsh_timeline_label(trace->process, span->module) : NULL,
		.phase = span ? span->phase : PHASE_SETUP,
		.call = innermost ? outermost(innermost)->ordinal + 1 : 0,
		.at_ns = event->at_ns,
	};
}

static void take_alloc(struct walker *walker, size_t device, const struct timeline_event *event,
		       struct span *innermost)
{
	const struct event_tensor *tensor = &event->event.tensor;
	struct memory_trace *trace = &walker->traces->items[device];
	struct trace_block block = block_of(walker, trace, event, innermost);
	struct live_block old, live = {.address = tensor->address, .size = tensor->bytes};

	if (!tensor->address || tensor->bytes > LIVE_SIZE_MAX)
		return;
	live.site = torsh_memory_trace_add_block(trace, &block);
	/* The free of an older block at that address was lost. */
	if (torsh_live_put(&walker->states[device].live, &live, &old))
		add_change(walker, trace, TRACE_FREE, old.site);
	add_change(walker, trace, TRACE_ALLOC, live.site);
}

static void take_free(struct walker *walker, size_t device, const struct event_tensor *tensor)
{
	struct memory_trace *trace = &walker->traces->items[device];
	struct live_block block;

	if (torsh_live_take(&walker->states[device].live, tensor->address, &block))
		add_change(walker, trace, TRACE_FREE, block.site);
	else
		trace->unknown_frees++;
}

/* Compare the sums that the allocator reports with those of the previous event. */
static void take_sums(struct walker *walker, size_t device, const struct event_tensor *tensor)
{
	struct memory_trace *trace = &walker->traces->items[device];
	struct trace_state *state = &walker->states[device];
	uint64_t change = tensor->is_free ? 0 : tensor->bytes;

	if (!state->has_last && tensor->allocated > change)
		trace->before_bytes = tensor->allocated - change;
	if (state->has_last && tensor->reserved < state->last.reserved) {
		trace->releases++;
		add_change(walker, trace, TRACE_RELEASE, 0);
	}
	state->last =
		(struct tensor_sums){.allocated = tensor->allocated, .reserved = tensor->reserved};
	state->has_last = true;
	if (tensor->allocated > trace->recorded.allocated)
		trace->recorded.allocated = tensor->allocated;
	if (tensor->reserved > trace->recorded.reserved)
		trace->recorded.reserved = tensor->reserved;
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	const struct event_tensor *tensor = &event->event.tensor;
	struct walker *walker = context;
	size_t device;

	walker->at_ns = event->at_ns;
	if (event->event.id == EVENT_OUT_OF_MEMORY && event->event.out_of_memory.device) {
		device = find_device(walker, process, event->event.out_of_memory.device);
		walker->traces->items[device].out_of_memory++;
	}
	if (event->event.id != EVENT_TENSOR || !torsh_tensor_has_sums(tensor))
		return;
	device = find_device(walker, process, tensor->device);
	take_sums(walker, device, tensor);
	if (tensor->is_free)
		take_free(walker, device, tensor);
	else
		take_alloc(walker, device, event, innermost);
}

static void free_trace(struct memory_trace *trace)
{
	free(trace->changes);
	free(trace->blocks);
}

/* Leave out devices whose allocator reserves nothing. */
static void drop_others(struct memory_traces *traces)
{
	size_t n = 0;

	for (size_t i = 0; i < traces->n; i++) {
		if (traces->items[i].recorded.reserved)
			traces->items[n++] = traces->items[i];
		else
			free_trace(&traces->items[i]);
	}
	traces->n = n;
}

void torsh_memory_traces_collect(struct memory_traces *traces, const struct recording *recording,
				 struct recorded_process *process, const struct prepass *prepass,
				 const struct batch *batch)
{
	static const struct span_visitor visitor = {.event = see_event};
	struct walker walker = {.traces = traces, .batch = batch, .prepass = prepass};
	int rc;

	*traces = (struct memory_traces){0};
	rc = torsh_spans_visit(recording, &process, 1, prepass->unnested, NULL, &visitor, &walker,
			       NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", recording->path, strerror(-rc));
	for (size_t i = 0; i < traces->n; i++)
		torsh_live_destroy(&walker.states[i].live);
	free(walker.states);
	drop_others(traces);
}

void torsh_memory_traces_free(struct memory_traces *traces)
{
	for (size_t i = 0; i < traces->n; i++)
		free_trace(&traces->items[i]);
	free(traces->items);
}
