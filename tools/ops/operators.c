/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/ops/operators.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/base/key_index.h"

const char *const torsh_operator_group_names[N_OPERATOR_GROUPS] = {
#define GROUP(NAME, name, text) #name,
	OPERATOR_GROUPS
#undef GROUP
};

/* A key as text, the same in all processes. */
struct known_key {
	char *text;
	size_t item;
};

/* The operators that were open when nodes of a graph were captured, the innermost first. */
struct capture {
	uint64_t ordinal; /* of the innermost call: the same for all nodes that it captured */
	struct call *calls;
	size_t n;
};

struct process_keys {
	const struct recorded_process *process;
	const struct steps *steps;
	const struct device_work *work;
	/* what is captured in an operator: its number among captures, from 1 */
	struct graph_nodes nodes;
	struct capture *captures;
	size_t n_captures, captures_room;
	struct key_index index; /* by numbers of this process: index of items */
	struct key_index unknown; /* by name */
};

struct collector {
	struct operators *operators;
	const struct operators_wish *wish;
	struct flops_book *book;
	struct process_keys *keys;
	size_t n_keys;
	struct process_keys *last;
	void *known, *known_unknown; /* trees of struct known_key */
};

static int compare_keys(const void *a, const void *b)
{
	return strcmp(((const struct known_key *)a)->text, ((const struct known_key *)b)->text);
}

static void free_key(void *key)
{
	free(((struct known_key *)key)->text);
	free(key);
}

/* The item of a text, which is freed; *n_items becomes that of the next where it is new. */
static size_t item_of(void **tree, char *text, size_t n_items, bool *is_new)
{
	struct known_key *key = torsh_need(malloc(sizeof(*key))), **found;

	*key = (struct known_key){.text = text, .item = n_items};
	found = torsh_need(tsearch(key, tree, compare_keys));
	*is_new = *found == key;
	if (!*is_new)
		free_key(key);
	return (*found)->item;
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

/* What tells calls of a process apart: two numbers. */
static uint64_t key_of(const struct process_keys *keys, const struct call *call,
		       enum operator_group group)
{
	uint64_t name = (uint64_t)call->name << 32;

	switch (group) {
	case OPERATORS_BY_NAME:
		return name + 1;
	case OPERATORS_BY_SHAPE:
		return (name | call->inputs) + 1;
	case OPERATORS_BY_STACK:
		return (name | (call->flags & OP_HAS_STACK ? call->stack : 0)) + 1;
	case OPERATORS_BY_OVERLOAD:
		return (name | call->overload) + 1;
	case OPERATORS_BY_MODULE:
		return (uint64_t)call->module + 1;
	case OPERATORS_BY_PHASE:
		return (uint64_t)call->phase + 1;
	default:
		/* STEP_NONE becomes 1. */
		return torsh_steps_at(keys->steps, call->start_ns) + 2;
	}
}

/* The same for all processes. Stacks are a process's own. */
static char *key_text(const struct call *call, enum operator_group group, const struct step *step)
{
	const struct recorded_process *process = call->process;

	switch (group) {
	case OPERATORS_BY_NAME:
		return torsh_need_text("%s", torsh_call_name(call));
	case OPERATORS_BY_SHAPE:
		return torsh_need_text("%s\n%s", torsh_call_name(call),
				       text_of(process, call->inputs));
	case OPERATORS_BY_STACK:
		return torsh_need_text("%s\n%u\n%u", torsh_call_name(call), process->number,
				       call->flags & OP_HAS_STACK ? call->stack : 0);
	case OPERATORS_BY_OVERLOAD:
		return torsh_need_text("%s\n%s", torsh_call_name(call),
				       text_of(process, call->overload));
	case OPERATORS_BY_MODULE:
		return torsh_need_text("%s", text_of(process, call->module));
	case OPERATORS_BY_PHASE:
		return torsh_need_text("%s", torsh_phase_names[call->phase]);
	default:
		return step ? torsh_need_text("%llu", (unsigned long long)step->number)
			    : torsh_need_text("-");
	}
}

static void fill_total(struct operator_total *total, const struct call *call,
		       enum operator_group group, const struct step *step)
{
	const char *name = group == OPERATORS_BY_MODULE	 ? text_of(call->process, call->module)
			   : group == OPERATORS_BY_PHASE ? torsh_phase_names[call->phase]
			   : group == OPERATORS_BY_STEP	 ? (step ? "step" : NULL)
							 : torsh_call_name(call);

	total->process = call->process;
	total->name = name ? torsh_need(strdup(name)) : NULL;
	total->min_ns = UINT64_MAX;
	if (group == OPERATORS_BY_SHAPE)
		total->inputs = torsh_need(strdup(text_of(call->process, call->inputs)));
	if (group == OPERATORS_BY_OVERLOAD)
		total->overload = torsh_need(strdup(text_of(call->process, call->overload)));
	if (group == OPERATORS_BY_STACK && call->flags & OP_HAS_STACK)
		total->stack = call->stack;
	if (step)
		total->step = step->number;
}

/* The place of a call's total; made where it is the first. */
static size_t place_of(struct collector *collector, struct process_keys *keys,
		       const struct call *call)
{
	struct operators *operators = collector->operators;
	enum operator_group group = operators->group;
	uint64_t key = key_of(keys, call, group);
	struct key_slot *slot = torsh_key_index_find(&keys->index, key);
	const struct step *step = NULL;
	bool is_new;
	size_t item;

	if (slot->key)
		return slot->number;
	if (group == OPERATORS_BY_STEP && key > 1)
		step = &keys->steps->items[key - 2];
	item = item_of(&collector->known, key_text(call, group, step), operators->n, &is_new);
	if (is_new) {
		operators->items = torsh_need_room(operators->items, operators->n,
						   &operators->n_room, sizeof(*operators->items));
		fill_total(&operators->items[operators->n++], call, group, step);
	}
	torsh_key_index_fill(&keys->index, slot, key, (uint32_t)item);
	return item;
}

static void count_unknown(struct collector *collector, struct process_keys *keys,
			  const struct call *call)
{
	struct operators *operators = collector->operators;
	uint64_t key = (uint64_t)call->name + 1;
	struct key_slot *slot = torsh_key_index_find(&keys->unknown, key);
	bool is_new = false;
	size_t item = slot->number;

	if (!slot->key) {
		item = item_of(&collector->known_unknown, torsh_need(strdup(torsh_call_name(call))),
			       operators->n_unknown, &is_new);
		torsh_key_index_fill(&keys->unknown, slot, key, (uint32_t)item);
	}
	if (is_new) {
		operators->unknown =
			torsh_need_room(operators->unknown, operators->n_unknown,
					&operators->unknown_room, sizeof(*operators->unknown));
		operators->unknown[operators->n_unknown++].name =
			torsh_need(strdup(torsh_call_name(call)));
	}
	operators->unknown[item].calls++;
}

static bool is_wanted(struct collector *collector, const struct call *call)
{
	const struct recorded_process *process = call->process;

	if (!torsh_steps_have(find_keys(collector, process)->steps, call->start_ns))
		return false;
	return !collector->wish->has_thread ||
	       (call->thread < process->n_threads &&
		process->threads[call->thread].tid == collector->wish->tid);
}

/* Names count as often as they are called; of other keys the outermost call is the whole. */
static bool is_inside_its_own(struct collector *collector, struct process_keys *keys,
			      const struct call *call, size_t place)
{
	const struct call *outer = torsh_call_outer_operator(call);

	return collector->operators->group >= OPERATORS_BY_MODULE && outer &&
	       place_of(collector, keys, outer) == place;
}

/* What is inside has been added to the call; what it did itself is the rest. */
static void add_call(struct collector *collector, struct process_keys *keys, struct call *call,
		     const struct flops *own)
{
	size_t place = place_of(collector, keys, call);
	bool is_inside = is_inside_its_own(collector, keys, call, place);
	struct operator_total *total = &collector->operators->items[place];
	uint64_t duration_ns = call->end_ns - call->start_ns;
	uint64_t self_ns = duration_ns > call->inner_ns ? duration_ns - call->inner_ns : 0;

	total->calls++;
	total->self_cpu_ns += self_ns;
	total->min_ns = duration_ns < total->min_ns ? duration_ns : total->min_ns;
	total->max_ns = duration_ns > total->max_ns ? duration_ns : total->max_ns;
	torsh_histogram_add(&total->durations, duration_ns);
	total->self_device_ns += call->self_device_ns;
	total->self_allocated_bytes += call->self_allocated_bytes;
	total->self_freed_bytes += call->self_freed_bytes;
	total->self_flops += own->counter;
	total->self_flops_all += own->all;
	total->has_flops = total->has_flops || call->has_counted || own->status == FLOPS_NONE;
	collector->operators->calls++;
	collector->operators->self_cpu_ns += self_ns;
	collector->operators->self_device_ns += call->self_device_ns;
	collector->operators->flops += own->counter;
	collector->operators->flops_all += own->all;
	if (is_inside)
		return;
	total->cpu_ns += duration_ns;
	total->device_ns += call->device_ns;
	total->allocated_bytes += call->allocated_bytes;
	total->freed_bytes += call->freed_bytes;
	total->flops += call->flops;
	total->flops_all += call->flops_all;
}

/* ---- calls of the same name inside of each other --------------------------------------------- */

/*
 * The first call inside of one of its own name, which has ended: it counts when another comes, or
 * with the outer one.
 */
struct nested {
	struct call call;
	struct flops own;
};

/* It isn't the only one after all. */
static void count_nested(struct collector *collector, struct call *outer)
{
	struct nested *nested = outer->own;

	if (!nested)
		return;
	outer->own = NULL;
	add_call(collector, find_keys(collector, nested->call.process), &nested->call,
		 &nested->own);
	free(nested);
}

/* Put the call aside, if it may be the only one in a call of its own name. */
static bool set_aside(struct collector *collector, const struct call *call, const struct flops *own)
{
	struct call *outer = collector->wish->merge_nested ? torsh_call_outer_operator(call) : NULL;
	struct nested *nested;

	if (!outer || outer->name != call->name || outer->n_inner)
		return false;
	nested = torsh_need(malloc(sizeof(*nested)));
	*nested = (struct nested){.call = *call, .own = *own};
	outer->own = nested;
	return true;
}

/* What the only call inside did itself, the call did. */
static void merge_nested(struct collector *collector, struct call *call, struct flops *own)
{
	struct nested *nested = call->own;

	if (!nested)
		return;
	call->own = NULL;
	call->inner_ns = nested->call.inner_ns;
	call->self_device_ns += nested->call.self_device_ns;
	call->self_allocated_bytes += nested->call.self_allocated_bytes;
	call->self_freed_bytes += nested->call.self_freed_bytes;
	own->counter += nested->own.counter;
	own->all += nested->own.all;
	collector->operators->merged_calls++;
	free(nested);
}

static void see_begin(void *context, struct call *call)
{
	struct collector *collector = context;
	struct call *outer;

	if (call->kind != CALL_OPERATOR)
		return;
	torsh_flops_book_begin(collector->book, call);
	outer = torsh_call_outer_operator(call);
	if (outer)
		count_nested(collector, outer);
}

static void see_end(void *context, struct call *call)
{
	struct collector *collector = context;
	struct process_keys *keys;
	struct flops own;

	if (call->kind != CALL_OPERATOR)
		return;
	own = torsh_flops_book_end(collector->book, call);
	if (!is_wanted(collector, call)) {
		count_nested(collector, call);
		return;
	}
	keys = find_keys(collector, call->process);
	if (own.status == FLOPS_NO_FORMULA && collector->operators->has_flops) {
		count_unknown(collector, keys, call);
		collector->operators->calls_without_inputs += !call->inputs;
	}
	merge_nested(collector, call, &own);
	if (!set_aside(collector, call, &own))
		add_call(collector, keys, call, &own);
}

static void add_device_time(uint64_t device_ns, struct call *innermost)
{
	innermost->device_ns += device_ns;
	innermost->self_device_ns += device_ns;
}

static uint32_t number_of_capture(struct process_keys *keys, const struct call *innermost)
{
	const struct capture *last =
		keys->n_captures ? &keys->captures[keys->n_captures - 1] : NULL;
	struct capture *capture;
	size_t n = 0;

	if (last && last->ordinal == innermost->ordinal)
		return (uint32_t)keys->n_captures;
	for (const struct call *call = innermost; call; call = torsh_call_outer_operator(call))
		n++;
	keys->captures = torsh_need_room(keys->captures, keys->n_captures, &keys->captures_room,
					 sizeof(*keys->captures));
	capture = &keys->captures[keys->n_captures++];
	*capture = (struct capture){.ordinal = innermost->ordinal,
				    .calls = torsh_need_items(NULL, 0, n, sizeof(*capture->calls))};
	for (const struct call *call = innermost; call; call = torsh_call_outer_operator(call))
		capture->calls[capture->n++] = *call;
	for (size_t i = 0; i < n; i++)
		capture->calls[i].outer = i + 1 < n ? &capture->calls[i + 1] : NULL;
	return (uint32_t)keys->n_captures;
}

/* A graph's node ran. It belongs to the operators that captured it, at the time when it ran. */
static void add_node(struct collector *collector, struct process_keys *keys,
		     const struct device_span *span)
{
	uint32_t number = torsh_graph_nodes_find(&keys->nodes, span->node);
	const struct capture *capture = number ? &keys->captures[number - 1] : NULL;

	for (size_t i = 0; capture && i < capture->n; i++)
		capture->calls[i].start_ns = span->begin_ns;
	for (size_t i = 0; capture && i < capture->n; i++) {
		const struct call *call = &capture->calls[i];
		size_t place;

		if (!is_wanted(collector, call))
			continue;
		place = place_of(collector, keys, call);
		if (i == 0) {
			collector->operators->items[place].self_device_ns += span->duration_ns;
			collector->operators->self_device_ns += span->duration_ns;
		}
		if (!is_inside_its_own(collector, keys, call, place))
			collector->operators->items[place].device_ns += span->duration_ns;
	}
}

static void see_device_event(struct collector *collector, const struct recorded_process *process,
			     const struct event *event, struct call *innermost)
{
	struct process_keys *keys = find_keys(collector, process);
	struct device_span span;

	if (event->id == EVENT_LAUNCH && innermost)
		add_device_time(torsh_device_work_of(keys->work, event->launch.correlation),
				innermost);
	else if (event->id == EVENT_OP_MARKED && innermost)
		add_device_time(torsh_device_work_marked(keys->work, event->op_marked.number),
				innermost);
	else if (event->id == EVENT_GRAPH_NODE)
		torsh_graph_nodes_see(&keys->nodes, &event->graph_node,
				      innermost ? number_of_capture(keys, innermost) : 0);
	else if (torsh_device_span(event, &span) && span.node)
		add_node(collector, keys, &span);
}

static void see_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event, struct call *innermost)
{
	const struct event_tensor *tensor = &event->event.tensor;
	struct collector *collector = context;

	if (event->event.id == EVENT_PROCESS_GROUP)
		torsh_groups_add(&collector->operators->groups, process,
				 &event->event.process_group);
	if (event->event.id >= EVENT_LAUNCH)
		see_device_event(collector, process, &event->event, innermost);
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
		free(keys->captures[i].calls);
	free(keys->captures);
}

void torsh_operators_collect(struct operators *operators, const struct operators_wish *wish,
			     const struct recording *recording,
			     struct recorded_process *const *processes, size_t n_processes,
			     const struct prepass *prepass)
{
	static const struct calls_visitor visitor = {
		.begin = see_begin, .end = see_end, .event = see_event};
	struct collector collector = {.operators = operators, .wish = wish, .n_keys = n_processes};
	int rc;

	*operators =
		(struct operators){.group = wish->group, .has_flops = !recording->without_flops};
	collector.book = torsh_flops_book_create(recording);
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
	rc = torsh_calls_walk(recording, processes, n_processes, prepass->unnested, NULL, &visitor,
			      &collector, NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", recording->path, strerror(-rc));
	for (size_t i = 0; i < n_processes; i++)
		free_keys(&collector.keys[i]);
	free(collector.keys);
	tdestroy(collector.known, free_key);
	tdestroy(collector.known_unknown, free_key);
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
