/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/analysis/metrics.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/ops/flops.h"

#define DEVICE_TYPE_CUDA 1u /* c10/core/DeviceType.h: the upper bits of a tensor's device */
#define OBSERVED_ALLOCATORS_MAX 64u /* per process; more are treated as damage */

static struct metrics_process *find_process(const struct metrics *metrics,
					    const struct recorded_process *process)
{
	for (size_t i = 0; i < metrics->n; i++) {
		if (metrics->processes[i].process == process)
			return &metrics->processes[i];
	}
	return NULL;
}

/* ---- the pass -------------------------------------------------------------------------------- */

static void see_work_end(struct metrics_process *of, uint64_t end_ns)
{
	of->last_work_ns = end_ns > of->last_work_ns ? end_ns : of->last_work_ns;
}

static void see_activity(void *context, const struct device_activity *activity)
{
	struct metrics *metrics = context;
	struct metrics_process *of = find_process(metrics, activity->process);
	struct metrics_device *device =
		of ? torsh_metrics_device(of, activity->record.device) : NULL;
	uint64_t asked_ns = torsh_activity_issued_ns(activity);
	struct attribution by;

	if (!device)
		return;
	see_work_end(of, activity->record.begin_ns + activity->record.duration_ns);
	torsh_attribute(metrics->attributor, activity, &by);
	/* Work launched before the scope keeps the device busy within it, too. */
	torsh_metrics_stretch(device, activity);
	if (torsh_scope_at(&of->scope, activity->is_captured ? activity->record.begin_ns
							     : asked_ns) != STEP_NONE)
		torsh_metrics_row(of, device, activity, &by);
}

static uint64_t place_of(void *context, const struct recorded_process *process,
			 const struct timeline_event *event, const struct enclosing_spans *around)
{
	static char has_launched;
	const struct metrics *metrics = context;

	if (around->in_operator)
		around->in_operator->own = &has_launched;
	return torsh_attributor_place(metrics->attributor, process, event, around->in_operator, 0);
}

static void see_launch(void *context, const struct recorded_process *process,
		       const struct timeline_event *event, const struct enclosing_spans *around)
{
	const struct metrics *metrics = context;
	struct metrics_process *of = find_process(metrics, process);

	if (of && event->event.id == EVENT_DEVICE_CALL)
		torsh_metrics_call(of, event, around);
	torsh_device_join_launch(metrics->join, process, event, around);
}

static void see_begin(void *context, struct span *span)
{
	const struct metrics *metrics = context;
	struct metrics_process *of = find_process(metrics, span->process);

	torsh_attributor_begin(metrics->attributor, span);
	torsh_phase_clock_begin(&of->clock, span);
}

static void add_operator(struct metrics_process *of, const struct span *span, size_t interval,
			 bool without_flops)
{
	struct metrics_operator *op = torsh_metrics_operator(of, torsh_span_name(span));
	const char *text = span->inputs ? torsh_timeline_label(span->process, span->inputs) : NULL;
	struct inputs *inputs = torsh_need(malloc(sizeof(*inputs)));
	struct flops flops;

	torsh_inputs_parse(inputs, text);
	flops = torsh_flops_of(op->name, inputs);
	torsh_metrics_shapes(of, op, inputs, span, interval);
	free(inputs);
	op->n++;
	/* What the program calls a range of its own has no information on what it computes. */
	if (flops.status == FLOPS_COUNTED && !without_flops && span->scope != OP_USER)
		op->flops += (double)flops.all;
	else
		op->n_unknown++;
}

static void see_end(void *context, struct span *span)
{
	const struct metrics *metrics = context;
	struct metrics_process *of = find_process(metrics, span->process);
	size_t interval = span->own ? torsh_scope_at(&of->scope, span->start_ns) : STEP_NONE;

	torsh_attributor_end(metrics->attributor, span);
	torsh_phase_clock_end(&of->clock, span);
	torsh_operator_time_add(&of->operator_time, &of->scope, span);
	torsh_host_costs_add(&of->costs, &of->scope, span);
	if (span->kind == SPAN_OPERATOR && !span->is_cut)
		see_work_end(of, span->end_ns);
	if (span->kind == SPAN_OPERATOR && span->own && interval != STEP_NONE)
		add_operator(of, span, interval, metrics->request->recording->without_flops);
	span->own = NULL;
}

/* ---- everything else ------------------------------------------------------------------------- */

static struct metrics_memory *find_memory(struct metrics_process *of, uint32_t device)
{
	for (size_t i = 0; i < of->n_memory; i++) {
		if (of->memory[i].device == device)
			return &of->memory[i];
	}
	if (of->n_memory == OBSERVED_ALLOCATORS_MAX)
		return NULL;
	of->memory = torsh_array_reserve(of->memory, of->n_memory, &of->memory_room,
					 sizeof(*of->memory));
	of->memory[of->n_memory].device = device;
	return &of->memory[of->n_memory++];
}

static void see_tensor(struct metrics_process *of, const struct timeline_event *event,
		       const struct span *innermost)
{
	const struct event_tensor *tensor = &event->event.tensor;
	const struct span *span = torsh_span_attributed(innermost);
	struct metrics_memory *memory;

	if (tensor->device >> 8 != DEVICE_TYPE_CUDA ||
	    torsh_scope_at(&of->scope, event->at_ns) == STEP_NONE)
		return;
	memory = find_memory(of, tensor->device & 0xff);
	if (!memory)
		return;
	if (tensor->reserved && (!memory->has_sums || tensor->allocated > memory->allocated)) {
		memory->has_sums = true;
		memory->allocated = tensor->allocated;
		memory->reserved = tensor->reserved;
	}
	if (tensor->is_free || tensor->bytes <= memory->largest_bytes)
		return;
	memory->largest_bytes = tensor->bytes;
	memory->largest_operator = span ? torsh_span_name(span) : NULL;
	memory->largest_stack = event->stack;
}

/*
 * A CUpti_ActivityOverheadKind of CUPTI: flushes, instrumentation, resources, requests for
 * buffers; not the driver's compilation or loading of code.
 */
static bool is_of_cupti(uint32_t kind)
{
	return kind == 1u << 16 || kind == 2u << 16 || kind == 3u << 16 || kind == 7u << 16 ||
	       kind == 8u << 16;
}

static void see_gc(struct metrics_process *of, const struct analysis_request *request,
		   const struct timeline_event *event, const struct span *innermost)
{
	const struct event_python_gc *run = &event->event.python_gc;

	if (run->begin < request->from_ns || run->begin >= request->to_ns)
		return;
	torsh_gc_time_add(&of->gc, &of->scope, of->process, event, innermost);
	torsh_busy_add(&of->operator_time.covered, run->begin, run->begin + run->duration_ns);
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	struct metrics *metrics = context;
	struct metrics_process *of = find_process(metrics, process);

	torsh_counters_see(&metrics->counters, process, &event->event);
	switch (event->event.id) {
	case EVENT_TENSOR:
		see_tensor(of, event, innermost);
		return;
	case EVENT_THREAD_WAIT:
		torsh_host_costs_wait(&of->costs, &of->scope, process, event, innermost);
		return;
	case EVENT_PYTHON_GC:
		see_gc(of, metrics->request, event, innermost);
		return;
	case EVENT_DEVICE_MODE:
		of->mode = event->event.device_mode;
		of->has_mode = true;
		return;
	case EVENT_DEVICE_LOSS:
		of->losses = event->event.device_loss;
		of->has_losses = true;
		return;
	case EVENT_DEVICE_OVERHEAD:
		if (is_of_cupti(event->event.device_overhead.kind))
			of->overhead_ns += event->event.device_overhead.duration_ns;
		return;
	default:
		torsh_device_join_event(metrics->join, process, &event->event);
	}
}

/* ---- life ------------------------------------------------------------------------------------ */

static void start_process(struct metrics_process *of, const struct recorded_process *process,
			  const struct analysis_request *request)
{
	of->process = process;
	of->of = torsh_prepass_of(request->prepass, process);
	torsh_scope_create(&of->scope, of->of, request->from_ns, request->to_ns);
	of->kind_of_label = torsh_need_items(NULL, 0, process->tables->n_functions + 1,
					     sizeof(*of->kind_of_label));
	torsh_host_costs_start(&of->costs, process);
	of->spent = torsh_need_items(NULL, 0, of->of->steps.n + 1, sizeof(*of->spent));
	torsh_phase_clock_start(&of->clock, &of->of->steps, of->spent);
}

static void take_data(struct metrics_process *of, const struct analysis_request *request)
{
	const struct steps *steps = &of->of->steps;

	torsh_phase_clock_stop(&of->clock);
	for (size_t i = 0; i < steps->n; i++) {
		if (steps->items[i].start_ns < request->from_ns ||
		    steps->items[i].end_ns > request->to_ns)
			continue;
		of->data_ns += of->spent[i].phase_ns[PHASE_DATA];
		of->data_scope_ns += torsh_scope_within(&of->scope, steps->items[i].start_ns,
							steps->items[i].end_ns);
	}
}

/* Frees what only the pass needs. */
static void end_process(struct metrics_process *of)
{
	torsh_hash_map_free(&of->known_work);
	torsh_hash_map_free(&of->known_calls);
	free(of->kind_of_label);
	free(of->spent);
	of->kind_of_label = NULL;
	of->spent = NULL;
}

struct metrics *torsh_metrics_collect(const struct analysis_request *request)
{
	static const struct span_visitor visitor = {
		.begin = see_begin, .end = see_end, .event = see_event, .launch = see_launch};
	static const struct device_visitor devices = {.own = place_of, .activity = see_activity};
	struct metrics *metrics = torsh_need(calloc(1, sizeof(*metrics)));
	int rc;

	metrics->request = request;
	metrics->n = request->n_processes;
	metrics->processes = torsh_need_items(NULL, 0, metrics->n, sizeof(*metrics->processes));
	for (size_t i = 0; i < metrics->n; i++)
		start_process(&metrics->processes[i], request->processes[i], request);
	torsh_counters_create(&metrics->counters);
	metrics->attributor =
		torsh_attributor_create(request->processes, request->n_processes, request->prepass);
	metrics->join = torsh_device_join_create(request->prepass, &devices, metrics);
	rc = torsh_spans_visit(request->recording, request->processes, request->n_processes,
			       request->prepass->unnested, NULL, &visitor, metrics, NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", request->recording->path,
			  strerror(-rc));
	torsh_device_join_destroy(metrics->join);
	metrics->join = NULL;
	for (size_t i = 0; i < metrics->n; i++) {
		struct metrics_process *of = &metrics->processes[i];

		torsh_scope_trim(&of->scope, of->last_work_ns);
		take_data(of, request);
		torsh_operator_time_settle(&of->operator_time, &of->scope);
		torsh_host_costs_settle(&of->costs, &of->scope);
		end_process(of);
		for (size_t k = 0; k < of->n_devices; k++)
			torsh_metrics_settle_device(&of->devices[k], &of->scope);
		for (int kind = 0; kind < N_HOST_KINDS; kind++)
			torsh_busy_settle(&of->host[kind].busy);
	}
	torsh_metrics_ranks(metrics);
	torsh_metrics_counters(metrics);
	return metrics;
}

static void free_process(struct metrics_process *of)
{
	for (size_t i = 0; i < of->n_devices; i++)
		torsh_stretches_free(&of->devices[i].stretches);
	for (int kind = 0; kind < N_HOST_KINDS; kind++)
		torsh_busy_free(&of->host[kind].busy);
	torsh_hash_map_free(&of->known_operators);
	torsh_operator_time_free(&of->operator_time);
	torsh_host_costs_free(&of->costs);
	torsh_gc_time_free(&of->gc);
	torsh_scope_destroy(&of->scope);
	free(of->work);
	free(of->calls);
	free(of->devices);
	free(of->memory);
	for (size_t i = 0; i < of->n_operators; i++)
		torsh_key_index_destroy(&of->operators[i].shapes);
	free(of->operators);
	free(of->collectives);
}

void torsh_metrics_free(struct metrics *metrics)
{
	if (!metrics)
		return;
	for (size_t i = 0; i < metrics->n; i++)
		free_process(&metrics->processes[i]);
	torsh_counters_destroy(&metrics->counters);
	torsh_attributor_destroy(metrics->attributor);
	free(metrics->processes);
	free(metrics);
}
