/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Collects device activities and the spans that launched them, in one pass over the timeline. */
#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/sparse_array.h"
#include "tools/base/die.h"
#include "tools/export/profile/profile_collect.h"

#define FORWARD_SPANS 65536u /* latest forward spans that are searched: a power of two */
#define DEVICE_CPU 0u /* c10/core/DeviceType.h: the upper bits of a tensor's device */

/* What is stored for an open span. */
struct open_span {
	struct span_id id, forward;
	uint32_t number; /* number of its operator + 1; 0: it has launched nothing yet */
	uint64_t host_bytes, device_bytes;
};

struct forward_span {
	uint64_t sequence;
	uint32_t thread;
	struct span_id id;
};

struct process_names {
	const struct recorded_process *process;
	struct known_name **by_label, **ranges;
	struct sparse_array forward; /* of struct forward_span, by torsh_span_slot */
};

struct collector {
	struct profile_json *profile;
	struct device_join *join;
	struct process_names *names, *last;
};

/* ---- names of spans -------------------------------------------------------------------------- */

struct known_name *torsh_profile_name(struct profile_json *profile, const char *text)
{
	const struct hash_entry *entry =
		torsh_hash_map_find(&profile->names, text, strlen(text) + 1);
	struct known_name *name;

	if (entry)
		return (struct known_name *)entry->value;
	name = torsh_need(calloc(1, sizeof(*name)));
	name->text = torsh_hash_map_put_text(&profile->names, text, (uintptr_t)name)->key;
	return name;
}

struct span_id torsh_profile_next_id(struct known_name *name)
{
	return (struct span_id){.name = name->text, .index = name->n_calls++};
}

static struct process_names *names_of(struct collector *collector,
				      const struct recorded_process *process)
{
	struct process_names *names = collector->last;

	if (names && names->process == process)
		return names;
	for (names = collector->names; names->process != process; names++)
		;
	return collector->last = names;
}

/* Returns the full name of an operator, or of the operator that a range's text names. */
static struct known_name *name_of(struct collector *collector, const struct span *span)
{
	const char *text = torsh_span_name(span);
	struct known_name *name;
	char *part;

	if (span->kind == SPAN_OPERATOR)
		return torsh_profile_name(collector->profile, text);
	part = torsh_need(strndup(text, torsh_attribution_operator_in(text)));
	name = torsh_profile_name(collector->profile, part);
	free(part);
	return name;
}

static struct span_id id_of(struct collector *collector, const struct span *span)
{
	struct process_names *names = names_of(collector, span->process);
	struct known_name **known;

	if (span->name > span->process->tables->n_functions)
		return torsh_profile_next_id(name_of(collector, span));
	known = span->kind == SPAN_OPERATOR ? &names->by_label[span->name]
					    : &names->ranges[span->name];
	if (!*known)
		*known = name_of(collector, span);
	return torsh_profile_next_id(*known);
}

/* ---- from backward to forward ---------------------------------------------------------------- */

/*
 * Remember the operator that created the node with a sequence number: the last one with this
 * number before the node runs.
 */
static void remember_forward(struct collector *collector, const struct span *span,
			     const struct open_span *own)
{
	struct process_names *names = names_of(collector, span->process);
	struct forward_span *forward;

	if (span->scope != OP_FUNCTION || span->sequence == OP_NO_SEQUENCE ||
	    span->phase == PHASE_BACKWARD || span->is_async)
		return;
	forward = torsh_sparse_array_at(&names->forward, torsh_span_slot(span, FORWARD_SPANS));
	*forward = (struct forward_span){
		.sequence = span->sequence, .thread = span->forward_thread, .id = own->id};
}

static struct span_id find_forward(struct collector *collector, const struct span *span)
{
	const struct process_names *names = names_of(collector, span->process);
	const struct span *outer = torsh_span_outer_operator(span);
	const struct forward_span *found;

	if (span->scope == OP_BACKWARD && span->sequence != OP_NO_SEQUENCE) {
		found = torsh_sparse_array_find(&names->forward,
						torsh_span_slot(span, FORWARD_SPANS));
		if (found && found->sequence == span->sequence &&
		    found->thread == span->forward_thread)
			return found->id;
	}
	/* The callees of a node of autograd belong to the node's forward span. */
	return outer && outer->own ? ((const struct open_span *)outer->own)->forward
				   : (struct span_id){0};
}

/* ---- spans ----------------------------------------------------------------------------------- */

bool torsh_profile_selects(const struct profile_json *profile,
			   const struct recorded_process *process, uint64_t at_ns)
{
	return torsh_trace_has(profile->trace, at_ns) &&
	       torsh_prepass_has(profile->trace->prepass, process, at_ns);
}

static void see_begin(void *context, struct span *span)
{
	struct collector *collector = context;
	struct profile_json *profile = collector->profile;
	struct open_span *own;

	torsh_attributor_begin(profile->attributor, span);
	if (span->is_module && !profile->model && !span->module)
		profile->model = torsh_span_name(span);
	if (span->kind != SPAN_OPERATOR &&
	    torsh_attributor_range(profile->attributor, span->process, span->thread) != span)
		return;
	span->own = own = torsh_need(calloc(1, sizeof(*own)));
	own->id = id_of(collector, span);
	if (span->kind != SPAN_OPERATOR)
		return;
	own->forward = find_forward(collector, span);
	remember_forward(collector, span, own);
}

static void fill_operator(struct profile_operator *op, const struct span *span,
			  const struct open_span *own)
{
	op->start_ns = span->start_ns;
	op->end_ns = span->end_ns;
	op->module = span->module;
	op->host_bytes = own->host_bytes;
	op->device_bytes = own->device_bytes;
}

static void see_end(void *context, struct span *span)
{
	struct profile_json *profile = ((struct collector *)context)->profile;
	struct open_span *own = span->own;

	torsh_attributor_end(profile->attributor, span);
	if (own && own->number)
		fill_operator(&profile->operators[own->number - 1], span, own);
	free(own);
	span->own = NULL;
}

/* ---- launches -------------------------------------------------------------------------------- */

struct profile_operator *torsh_profile_add_operator(struct profile_json *profile,
						    const struct recorded_process *process,
						    struct span_id id,
						    enum attribution_method method)
{
	profile->operators =
		torsh_array_reserve(profile->operators, profile->n_operators,
				    &profile->operators_room, sizeof(*profile->operators));
	profile->operators[profile->n_operators] = (struct profile_operator){
		.process = process, .id = id, .method = method, .sequence = OP_NO_SEQUENCE};
	return &profile->operators[profile->n_operators++];
}

/*
 * Returns the tag of the innermost range "layer::unique::block_1" or "layer::duplicate::block_2"
 * around the span.
 */
static uint32_t find_layer_tag(const struct span *span)
{
	for (; span; span = span->outer) {
		if (span->kind == SPAN_RANGE && !span->is_module &&
		    strncmp(torsh_span_name(span), "layer::", 7) == 0)
			return span->name;
	}
	return 0;
}

static uint32_t count_ranges(const struct span *span)
{
	uint32_t n = 0;

	while ((span = span->outer))
		n += span->kind == SPAN_RANGE && !span->is_module;
	return n;
}

/*
 * Returns the number + 1 of the operator of an open span, or of a range that acts as one; it is
 * created at its first launch.
 */
static uint32_t operator_of_span(struct profile_json *profile, struct span *span)
{
	struct open_span *own = span->own;
	struct profile_operator *op;

	if (own->number)
		return own->number;
	op = torsh_profile_add_operator(profile, span->process, own->id, ATTRIBUTION_BY_DIRECT);
	own->number = (uint32_t)profile->n_operators;
	op->is_operator = span->kind == SPAN_OPERATOR;
	op->is_scope = op->is_operator && span->scope == OP_USER;
	op->forward = own->forward;
	op->sequence = span->sequence;
	op->inputs = span->inputs;
	op->phase = span->phase;
	op->layer_tag = find_layer_tag(span);
	fill_operator(op, span, own);
	if (span->kind == SPAN_RANGE) {
		op->range = span->name;
		op->domain = span->domain;
		op->depth = count_ranges(span);
	}
	return own->number;
}

static uint64_t place_of(void *context, const struct recorded_process *process,
			 const struct timeline_event *event, const struct enclosing_spans *around)
{
	struct profile_json *profile = ((struct collector *)context)->profile;
	struct span *range = torsh_attributor_range(profile->attributor, process, event->thread);
	struct span *span = around->in_operator ? around->in_operator : range;
	/* A node that is captured in a graph counts when it runs. */
	bool is_node = event->event.id == EVENT_GRAPH_NODE;
	uint32_t owner = OWNER_NONE;

	if (!is_node &&
	    !torsh_profile_selects(profile, process, span ? span->start_ns : event->at_ns))
		owner = OWNER_LEFT_OUT;
	else if (span && (is_node || event->event.launch.correlation))
		owner = operator_of_span(profile, span) - 1 + OWNER_FIRST;
	return torsh_attributor_place(profile->attributor, process, event, around->in_operator,
				      owner);
}

static void see_launch(void *context, const struct recorded_process *process,
		       const struct timeline_event *event, const struct enclosing_spans *around)
{
	const struct collector *collector = context;

	torsh_device_join_launch(collector->join, process, event, around);
}

/* ---- what devices did ------------------------------------------------------------------------ */

static void see_activity(void *context, const struct device_activity *activity)
{
	struct profile_json *profile = ((struct collector *)context)->profile;
	const struct event_kernel *kernel = &activity->event.kernel;
	struct profile_work *work;

	profile->work = torsh_array_reserve(profile->work, profile->n_work, &profile->work_room,
					    sizeof(*profile->work));
	work = &profile->work[profile->n_work++];
	work->process = activity->process;
	work->record = activity->record;
	torsh_attribute(profile->attributor, activity, &work->by);
	if (activity->event.id != EVENT_KERNEL)
		return;
	memcpy(work->grid, (uint32_t[]){kernel->grid_x, kernel->grid_y, kernel->grid_z},
	       sizeof(work->grid));
	memcpy(work->block, (uint32_t[]){kernel->block_x, kernel->block_y, kernel->block_z},
	       sizeof(work->block));
	work->registers = kernel->registers;
	work->static_bytes = kernel->static_shared_bytes;
	work->dynamic_bytes = kernel->dynamic_shared_bytes;
}

static void see_tensor(const struct event_tensor *tensor, struct span *innermost)
{
	struct open_span *own = innermost ? innermost->own : NULL;

	if (!own || tensor->is_free)
		return;
	if (tensor->device >> 8 == DEVICE_CPU)
		own->host_bytes += tensor->bytes;
	else
		own->device_bytes += tensor->bytes;
}

static void see_loss(struct profile_json *profile, const struct recorded_process *process,
		     const struct event_device_loss *losses)
{
	struct profile_texts *strings = profile->strings;

	while (strings->process != process)
		strings++;
	strings->losses = *losses;
	strings->has_losses = true;
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	const struct collector *collector = context;
	struct profile_json *profile = collector->profile;

	switch (event->event.id) {
	case EVENT_TENSOR:
		see_tensor(&event->event.tensor, innermost);
		return;
	case EVENT_DEVICE_MODE:
		if (!profile->mode_of || profile->mode_of == process)
			profile->mode = event->event.device_mode;
		profile->mode_of = profile->mode_of ? profile->mode_of : process;
		return;
	case EVENT_DEVICE_LOSS:
		see_loss(profile, process, &event->event.device_loss);
		return;
	default:
		torsh_counters_see(&profile->counters, process, &event->event);
		torsh_device_join_event(collector->join, process, &event->event);
	}
}

int torsh_profile_collect(struct profile_json *profile)
{
	static const struct span_visitor visitor = {
		.begin = see_begin, .end = see_end, .event = see_event, .launch = see_launch};
	static const struct device_visitor devices = {.own = place_of, .activity = see_activity};
	const struct trace *trace = profile->trace;
	struct collector collector = {.profile = profile};
	int rc;

	torsh_counters_create(&profile->counters);
	profile->attributor =
		torsh_attributor_create(trace->processes, trace->n_processes, trace->prepass);
	profile->strings = torsh_need_items(NULL, 0, trace->n_processes, sizeof(*profile->strings));
	collector.names = torsh_need_items(NULL, 0, trace->n_processes, sizeof(*collector.names));
	for (size_t i = 0; i < trace->n_processes; i++) {
		size_t n_labels = trace->processes[i]->tables->n_functions + 1;

		profile->strings[i].process = collector.names[i].process = trace->processes[i];
		collector.names[i].by_label =
			torsh_need_items(NULL, 0, n_labels, sizeof(*collector.names[i].by_label));
		collector.names[i].ranges =
			torsh_need_items(NULL, 0, n_labels, sizeof(*collector.names[i].ranges));
		torsh_sparse_array_create(&collector.names[i].forward, sizeof(struct forward_span));
	}
	collector.join = torsh_device_join_create(trace->prepass, &devices, &collector);
	rc = torsh_spans_visit(trace->recording, trace->processes, trace->n_processes,
			       trace->prepass->unnested, NULL, &visitor, &collector, NULL);
	torsh_device_join_destroy(collector.join);
	for (size_t i = 0; i < trace->n_processes; i++) {
		free(collector.names[i].by_label);
		free(collector.names[i].ranges);
		torsh_sparse_array_destroy(&collector.names[i].forward);
	}
	free(collector.names);
	torsh_profile_place(profile);
	return rc;
}

static void free_texts(struct profile_texts *strings)
{
	for (size_t i = 0; i <= strings->process->tables->n_functions; i++) {
		if (strings->names)
			free(strings->names[i]);
		if (strings->demangled)
			free(strings->demangled[i]);
	}
	free(strings->measured);
	free(strings->names);
	for (size_t i = 0; i < strings->n_stacks; i++)
		free(strings->lines[i]);
	free(strings->lines);
	free(strings->demangled);
}

void torsh_profile_free(struct profile_json *profile)
{
	torsh_attributor_destroy(profile->attributor);
	torsh_counters_destroy(&profile->counters);
	for (size_t i = 0; i < profile->trace->n_processes; i++)
		free_texts(&profile->strings[i]);
	for (size_t i = 0; i < profile->n_layers; i++)
		free(profile->layers[i].label);
	for (size_t i = 0; i < profile->n_groups; i++)
		free(profile->groups[i]);
	free(profile->groups);
	free(profile->layers);
	free(profile->strings);
	free(profile->bounds);
	free(profile->unbound);
	free(profile->fused);
	free(profile->operators);
	free(profile->work);
	free(profile->order);
	torsh_hash_map_free_values(&profile->names, free);
}
