/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ops/operators.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/hash_map.h"
#include "tools/base/containers/key_index.h"
#include "tools/base/die.h"

const char *const torsh_operator_group_names[N_OPERATOR_GROUPS] = {
#define GROUP(NAME, name, text) #name,
	OPERATOR_GROUPS
#undef GROUP
};

/* The operators that were open when nodes of a graph were captured, innermost first. */
struct capture {
	uint64_t ordinal; /* of the innermost span: equal for all nodes that it captured */
	struct span *spans;
	size_t n;
};

struct process_keys {
	const struct recorded_process *process;
	const struct steps *steps;
	const struct device_work *work;
	/* nodes by the operators that captured them: number of the capture, from 1 */
	struct graph_nodes nodes;
	struct capture *captures;
	size_t n_captures, captures_room;
	struct key_index index; /* keyed by numbers of this process: index of items */
	struct key_index unknown; /* by name */
};

struct collector {
	struct operators *operators;
	const struct operators_request *request;
	struct flops_book *book;
	struct process_keys *keys;
	size_t n_keys;
	struct process_keys *last;
	/* items by texts, which are equal in all processes */
	struct hash_map known, known_unknown;
};

/* Returns the item of a text, and frees the text; *n_items is incremented if the item is new. */
static size_t item_of(struct hash_map *map, char *text, size_t n_items, bool *is_new)
{
	size_t item = torsh_hash_map_put_text(map, text, n_items)->value;

	free(text);
	*is_new = item == n_items;
	return item;
}

static struct process_keys *find_keys(struct collector *collector,
				      const struct recorded_process *process)
{
	if (collector->last && collector->last->process == process)
		return collector->last;
	for (size_t i = 0; i < collector->n_keys; i++) {
		if (collector->keys[i].process == process)
			return collector->last = &collector->keys[i];
	}
	return NULL;
}

static const char *text_of(const struct recorded_process *process, uint32_t label)
{
	const char *text = torsh_timeline_label(process, label);

	return text ? text : "";
}

/* Returns the identity of a span within its process, as a number. */
static uint64_t key_of(const struct process_keys *keys, const struct span *span,
		       enum operator_group group)
{
	uint64_t name = (uint64_t)span->name << 32;

	switch (group) {
	case OPERATORS_BY_NAME:
		return name + 1;
	case OPERATORS_BY_SHAPE:
		return (name | span->inputs) + 1;
	case OPERATORS_BY_STACK:
		return (name | (span->flags & OP_HAS_STACK ? span->stack : 0)) + 1;
	case OPERATORS_BY_OVERLOAD:
		return (name | span->overload) + 1;
	case OPERATORS_BY_MODULE:
		return (uint64_t)span->module + 1;
	case OPERATORS_BY_PHASE:
		return (uint64_t)span->phase + 1;
	default:
		/* STEP_NONE becomes 1. */
		return torsh_steps_of(keys->steps, span->start_ns, span->thread) + 2;
	}
}

/*
 * Returns an identity that is equal in all processes. Not for stacks, which belong to one process.
 */
static char *key_text(const struct span *span, enum operator_group group, const struct step *step)
{
	const struct recorded_process *process = span->process;

	switch (group) {
	case OPERATORS_BY_NAME:
		return torsh_need_text("%s", torsh_span_name(span));
	case OPERATORS_BY_SHAPE:
		return torsh_need_text("%s\n%s", torsh_span_name(span),
				       text_of(process, span->inputs));
	case OPERATORS_BY_STACK:
		return torsh_need_text("%s\n%u\n%u", torsh_span_name(span), process->number,
				       span->flags & OP_HAS_STACK ? span->stack : 0);
	case OPERATORS_BY_OVERLOAD:
		return torsh_need_text("%s\n%s", torsh_span_name(span),
				       text_of(process, span->overload));
	case OPERATORS_BY_MODULE:
		return torsh_need_text("%s", text_of(process, span->module));
	case OPERATORS_BY_PHASE:
		return torsh_need_text("%s", torsh_phase_names[span->phase]);
	default:
		return step ? torsh_need_text("%llu", (unsigned long long)step->number)
			    : torsh_need_text("-");
	}
}

static void fill_total(struct operator_total *total, const struct span *span,
		       enum operator_group group, const struct step *step)
{
	const char *name = group == OPERATORS_BY_MODULE	 ? text_of(span->process, span->module)
			   : group == OPERATORS_BY_PHASE ? torsh_phase_names[span->phase]
			   : group == OPERATORS_BY_STEP	 ? (step ? "step" : NULL)
							 : torsh_span_name(span);

	total->process = span->process;
	total->name = name ? torsh_need(strdup(name)) : NULL;
	total->min_ns = UINT64_MAX;
	if (group == OPERATORS_BY_SHAPE)
		total->inputs = torsh_need(strdup(text_of(span->process, span->inputs)));
	if (group == OPERATORS_BY_OVERLOAD)
		total->overload = torsh_need(strdup(text_of(span->process, span->overload)));
	if (group == OPERATORS_BY_STACK && span->flags & OP_HAS_STACK)
		total->stack = span->stack;
	if (step)
		total->step = step->number;
}

/* Returns the index of a span's total, and creates it if it is new. */
static size_t place_of(struct collector *collector, struct process_keys *keys,
		       const struct span *span)
{
	struct operators *operators = collector->operators;
	enum operator_group group = operators->group;
	uint64_t key = key_of(keys, span, group);
	struct key_slot *slot = torsh_key_index_find(&keys->index, key);
	const struct step *step = NULL;
	bool is_new;
	size_t item;

	if (slot->key)
		return slot->number;
	if (group == OPERATORS_BY_STEP && key > 1)
		step = &keys->steps->items[key - 2];
	item = item_of(&collector->known, key_text(span, group, step), operators->n, &is_new);
	if (is_new) {
		operators->items =
			torsh_array_reserve(operators->items, operators->n, &operators->n_room,
					    sizeof(*operators->items));
		fill_total(&operators->items[operators->n++], span, group, step);
	}
	torsh_key_index_fill(&keys->index, slot, key, (uint32_t)item);
	return item;
}

static void count_unknown(struct collector *collector, struct process_keys *keys,
			  const struct span *span, const char *reason)
{
	struct operators *operators = collector->operators;
	uint64_t key = (uint64_t)span->name + 1;
	struct key_slot *slot = torsh_key_index_find(&keys->unknown, key);
	bool is_new = false;
	size_t item = slot->number;

	if (!slot->key) {
		item = item_of(&collector->known_unknown, torsh_need(strdup(torsh_span_name(span))),
			       operators->n_unknown, &is_new);
		torsh_key_index_fill(&keys->unknown, slot, key, (uint32_t)item);
	}
	if (is_new) {
		operators->unknown =
			torsh_array_reserve(operators->unknown, operators->n_unknown,
					    &operators->unknown_room, sizeof(*operators->unknown));
		operators->unknown[operators->n_unknown++] = (struct operator_unknown){
			.name = torsh_need(strdup(torsh_span_name(span))), .reason = reason};
	}
	operators->unknown[item].calls++;
}

static bool is_wanted(struct collector *collector, const struct span *span)
{
	const struct recorded_process *process = span->process;

	if (!torsh_steps_have(find_keys(collector, process)->steps, span->start_ns))
		return false;
	return !collector->request->has_thread ||
	       (span->thread < process->n_threads &&
		process->threads[span->thread].tid == collector->request->tid);
}

/* A name counts each of its calls; for other keys the outermost span includes the inner ones. */
static bool is_inside_its_own(struct collector *collector, struct process_keys *keys,
			      const struct span *span, size_t place)
{
	const struct span *outer = torsh_span_outer_operator(span);

	return collector->operators->group >= OPERATORS_BY_MODULE && outer &&
	       place_of(collector, keys, outer) == place;
}

/* The time of inner spans has been added to the span; the rest is its own. */
static void add_span(struct collector *collector, struct process_keys *keys, struct span *span,
		     const struct flops *own)
{
	size_t place = place_of(collector, keys, span);
	bool is_inside = is_inside_its_own(collector, keys, span, place);
	struct operator_total *total = &collector->operators->items[place];
	uint64_t duration_ns = span->end_ns - span->start_ns;
	uint64_t self_ns = duration_ns > span->inner_ns ? duration_ns - span->inner_ns : 0;

	total->calls++;
	total->self_cpu_ns += self_ns;
	total->min_ns = duration_ns < total->min_ns ? duration_ns : total->min_ns;
	total->max_ns = duration_ns > total->max_ns ? duration_ns : total->max_ns;
	torsh_histogram_add(&total->durations, duration_ns);
	total->self_device_ns += span->self_device_ns;
	torsh_cpu_counts_add(&total->self_counts, &span->self_counts);
	total->self_allocated_bytes += span->self_allocated_bytes;
	total->self_freed_bytes += span->self_freed_bytes;
	total->self_flops += own->counter;
	total->self_flops_all += own->all;
	total->has_flops = total->has_flops || span->has_counted || own->status == FLOPS_NONE;
	collector->operators->calls++;
	collector->operators->self_cpu_ns += self_ns;
	collector->operators->self_device_ns += span->self_device_ns;
	collector->operators->flops += own->counter;
	collector->operators->flops_all += own->all;
	collector->operators->has_elsewhere =
		collector->operators->has_elsewhere || (own->all && own->is_elsewhere);
	if (is_inside)
		return;
	total->cpu_ns += duration_ns;
	total->device_ns += span->device_ns;
	torsh_cpu_counts_add(&total->counts, &span->counts);
	total->allocated_bytes += span->allocated_bytes;
	total->freed_bytes += span->freed_bytes;
	total->flops += span->flops;
	total->flops_all += span->flops_all;
}

/* ---- spans of the same name inside of each other --------------------------------------------- */

/*
 * The first inner span with its parent's name. It has ended; it is counted when a second one
 * comes, and merged with the parent otherwise.
 */
struct nested {
	struct span span;
	struct flops own;
};

/* There is a second inner span: count the first one. */
static void count_nested(struct collector *collector, struct span *outer)
{
	struct nested *nested = outer->own;

	if (!nested)
		return;
	outer->own = NULL;
	add_span(collector, find_keys(collector, nested->span.process), &nested->span,
		 &nested->own);
	free(nested);
}

/* Defer counting the span, if it may be the only one in a span of its name. */
static bool set_aside(struct collector *collector, const struct span *span, const struct flops *own)
{
	struct span *outer =
		collector->request->merge_nested ? torsh_span_outer_operator(span) : NULL;
	struct nested *nested;

	if (!outer || outer->name != span->name || outer->n_inner)
		return false;
	nested = torsh_need(malloc(sizeof(*nested)));
	*nested = (struct nested){.span = *span, .own = *own};
	outer->own = nested;
	return true;
}

/* What the only inner span did counts as done by the outer one. */
static void merge_nested(struct collector *collector, struct span *span, struct flops *own)
{
	struct nested *nested = span->own;

	if (!nested)
		return;
	span->own = NULL;
	span->inner_ns = nested->span.inner_ns;
	span->self_device_ns += nested->span.self_device_ns;
	torsh_cpu_counts_add(&span->self_counts, &nested->span.self_counts);
	span->self_allocated_bytes += nested->span.self_allocated_bytes;
	span->self_freed_bytes += nested->span.self_freed_bytes;
	own->counter += nested->own.counter;
	own->all += nested->own.all;
	collector->operators->merged_calls++;
	free(nested);
}

static void see_begin(void *context, struct span *span)
{
	struct collector *collector = context;
	struct span *outer;

	if (span->kind != SPAN_OPERATOR)
		return;
	torsh_flops_book_begin(collector->book, span);
	outer = torsh_span_outer_operator(span);
	if (outer)
		count_nested(collector, outer);
}

static void see_end(void *context, struct span *span)
{
	struct collector *collector = context;
	struct process_keys *keys;
	struct flops own;

	if (span->kind != SPAN_OPERATOR)
		return;
	own = torsh_flops_book_end(collector->book, span);
	if (!is_wanted(collector, span)) {
		count_nested(collector, span);
		return;
	}
	keys = find_keys(collector, span->process);
	if (own.status == FLOPS_NO_FORMULA && collector->operators->has_flops) {
		count_unknown(collector, keys, span, own.reason);
		collector->operators->calls_without_inputs += !span->inputs;
	}
	merge_nested(collector, span, &own);
	if (!set_aside(collector, span, &own))
		add_span(collector, keys, span, &own);
}

static void add_device_time(uint64_t device_ns, struct span *innermost)
{
	innermost->device_ns += device_ns;
	innermost->self_device_ns += device_ns;
}

static uint32_t number_of_capture(struct process_keys *keys, const struct span *innermost)
{
	const struct capture *last =
		keys->n_captures ? &keys->captures[keys->n_captures - 1] : NULL;
	struct capture *capture;
	size_t n = 0;

	if (last && last->ordinal == innermost->ordinal)
		return (uint32_t)keys->n_captures;
	for (const struct span *span = innermost; span; span = torsh_span_outer_operator(span))
		n++;
	keys->captures = torsh_array_reserve(keys->captures, keys->n_captures, &keys->captures_room,
					     sizeof(*keys->captures));
	capture = &keys->captures[keys->n_captures++];
	*capture = (struct capture){.ordinal = innermost->ordinal,
				    .spans = torsh_need_items(NULL, 0, n, sizeof(*capture->spans))};
	for (const struct span *span = innermost; span; span = torsh_span_outer_operator(span))
		capture->spans[capture->n++] = *span;
	for (size_t i = 0; i < n; i++)
		capture->spans[i].outer = i + 1 < n ? &capture->spans[i + 1] : NULL;
	return (uint32_t)keys->n_captures;
}

/* A node of a graph ran: it belongs to the operators that captured it, at the time when it ran. */
static void add_node(struct collector *collector, struct process_keys *keys,
		     const struct activity_record *record)
{
	uint32_t number = torsh_graph_nodes_find(&keys->nodes, record->node);
	const struct capture *capture = number ? &keys->captures[number - 1] : NULL;

	for (size_t i = 0; capture && i < capture->n; i++)
		capture->spans[i].start_ns = record->begin_ns;
	for (size_t i = 0; capture && i < capture->n; i++) {
		const struct span *span = &capture->spans[i];
		size_t place;

		if (!is_wanted(collector, span))
			continue;
		place = place_of(collector, keys, span);
		if (i == 0) {
			collector->operators->items[place].self_device_ns += record->duration_ns;
			collector->operators->self_device_ns += record->duration_ns;
		}
		if (!is_inside_its_own(collector, keys, span, place))
			collector->operators->items[place].device_ns += record->duration_ns;
	}
}

static void see_device_event(struct collector *collector, const struct recorded_process *process,
			     const struct event *event, struct span *innermost)
{
	struct process_keys *keys = find_keys(collector, process);
	struct activity_record record;

	if (event->id == EVENT_LAUNCH && innermost)
		add_device_time(torsh_device_work_of(keys->work, event->launch.correlation),
				innermost);
	else if (event->id == EVENT_OP_MARKED && innermost)
		add_device_time(torsh_device_work_marked(keys->work, event->op_marked.number),
				innermost);
	else if (event->id == EVENT_GRAPH_NODE)
		torsh_graph_nodes_see(&keys->nodes, &event->graph_node,
				      innermost ? number_of_capture(keys, innermost) : 0);
	else if (torsh_activity_record(event, &record) && record.node)
		add_node(collector, keys, &record);
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct span *innermost)
{
	const struct event_tensor *tensor = &event->event.tensor;
	struct collector *collector = context;

	if (event->event.id == EVENT_PROCESS_GROUP)
		torsh_groups_add(&collector->operators->groups, process,
				 &event->event.process_group);
	if (event->event.id >= EVENT_LAUNCH)
		see_device_event(collector, process, &event->event, innermost);
	if (innermost && torsh_cpu_counts_are_in(&event->event)) {
		torsh_cpu_counts_take(&innermost->counts, &event->event);
		torsh_cpu_counts_take(&innermost->self_counts, &event->event);
	}
	if (event->event.id != EVENT_TENSOR || !innermost)
		return;
	if (tensor->is_free) {
		innermost->freed_bytes += tensor->bytes;
		innermost->self_freed_bytes += tensor->bytes;
	} else {
		innermost->allocated_bytes += tensor->bytes;
		innermost->self_allocated_bytes += tensor->bytes;
	}
}

static void free_keys(struct process_keys *keys)
{
	torsh_key_index_destroy(&keys->index);
	torsh_key_index_destroy(&keys->unknown);
	torsh_graph_nodes_destroy(&keys->nodes);
	for (size_t i = 0; i < keys->n_captures; i++)
		free(keys->captures[i].spans);
	free(keys->captures);
}

void torsh_operators_collect(struct operators *operators, const struct operators_request *request,
			     const struct recording *recording,
			     struct recorded_process *const *processes, size_t n_processes,
			     const struct prepass *prepass)
{
	static const struct span_visitor visitor = {
		.begin = see_begin, .end = see_end, .event = see_event};
	struct collector collector = {
		.operators = operators, .request = request, .n_keys = n_processes};
	int rc;

	*operators =
		(struct operators){.group = request->group, .has_flops = !recording->without_flops};
	collector.book = torsh_flops_book_create(recording, prepass);
	collector.keys = torsh_need_items(NULL, 0, n_processes, sizeof(*collector.keys));
	for (size_t i = 0; i < n_processes; i++) {
		collector.keys[i].process = processes[i];
		collector.keys[i].steps = &torsh_prepass_of(prepass, processes[i])->steps;
		collector.keys[i].work = &torsh_prepass_of(prepass, processes[i])->work;
		operators->has_devices = operators->has_devices || collector.keys[i].work->is_seen;
		torsh_key_index_create(&collector.keys[i].index);
		torsh_key_index_create(&collector.keys[i].unknown);
		torsh_graph_nodes_create(&collector.keys[i].nodes);
	}
	rc = torsh_spans_visit(recording, processes, n_processes, prepass->unnested, NULL, &visitor,
			       &collector, NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", recording->path, strerror(-rc));
	for (size_t i = 0; i < n_processes; i++)
		free_keys(&collector.keys[i]);
	free(collector.keys);
	torsh_hash_map_free(&collector.known);
	torsh_hash_map_free(&collector.known_unknown);
	torsh_flops_book_destroy(collector.book);
}

void torsh_operators_free(struct operators *operators)
{
	for (size_t i = 0; i < operators->n; i++) {
		free(operators->items[i].name);
		free(operators->items[i].overload);
		free(operators->items[i].inputs);
		torsh_histogram_free(&operators->items[i].durations);
	}
	for (size_t i = 0; i < operators->n_unknown; i++)
		free(operators->unknown[i].name);
	torsh_groups_free(&operators->groups);
	free(operators->items);
	free(operators->unknown);
}
