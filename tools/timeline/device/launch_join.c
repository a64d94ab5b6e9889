/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/device/launch_join.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/timeline/device/launches.h"

#define NO_ROW SIZE_MAX

const char *const torsh_kernel_reasons[N_KERNEL_REASONS] = {
#define REASON(NAME, text) text,
	KERNEL_REASONS
#undef REASON
};

/* An activity that was reported before its launch, by another thread during the call. */
struct early_activity {
	struct device_activity activity;
	size_t next; /* the next one of the same launch, or NO_ROW */
};

struct early_list {
	size_t first, last;
};

struct process_state {
	const struct recorded_process *process;
	const struct device_work *work;
	struct launches waiting;
	struct early_activity *early;
	size_t n_early, early_room;
	struct early_list *lists;
	size_t n_lists, lists_room;
	struct key_index index; /* by correlation id: index of lists */
	struct graph_nodes nodes; /* where they were captured: index of captures, from 1 */
	struct graph_nodes stacks; /* of nodes, at their capture */
	struct device_cause *captures;
	size_t n_captures, captures_room;
};

struct device_join {
	const struct device_visitor *visitor;
	void *context;
	struct process_state *states, *last;
	size_t n_states;
};

struct device_join *torsh_device_join_create(const struct prepass *prepass,
					     const struct device_visitor *visitor, void *context)
{
	struct device_join *join = torsh_need(calloc(1, sizeof(*join)));

	join->visitor = visitor;
	join->context = context;
	join->n_states = prepass->n;
	join->states = torsh_need_items(NULL, 0, prepass->n, sizeof(*join->states));
	for (size_t i = 0; i < prepass->n; i++) {
		join->states[i].process = prepass->items[i].process;
		join->states[i].work = &prepass->items[i].work;
		torsh_launches_create(&join->states[i].waiting);
		torsh_key_index_create(&join->states[i].index);
		torsh_graph_nodes_create(&join->states[i].nodes);
		torsh_graph_nodes_create(&join->states[i].stacks);
	}
	return join;
}

static struct process_state *find_state(struct device_join *join,
					const struct recorded_process *process)
{
	if (join->last && join->last->process == process)
		return join->last;
	for (size_t i = 0; i < join->n_states; i++) {
		if (join->states[i].process == process)
			return join->last = &join->states[i];
	}
	return NULL;
}

/*
 * Report an activity with its cause. reason: why there is no operator. A node that was captured in
 * an operator belongs to it, whatever launched the graph.
 */
static void report(struct device_join *join, const struct process_state *state,
		   struct device_activity *activity, enum kernel_reason reason)
{
	uint32_t capture = activity->record.node
				   ? torsh_graph_nodes_find(&state->nodes, activity->record.node)
				   : 0;

	activity->is_captured = capture != 0;
	activity->cause = capture ? state->captures[capture - 1] : activity->launch.cause;
	activity->reason = activity->cause.has_operator ? KERNEL_NONE : reason;
	join->visitor->activity(join->context, activity);
}

/* Returns false if its launch has not been reported yet. */
static bool report_with_launch(struct device_join *join, struct process_state *state,
			       struct device_activity *activity)
{
	struct launch_waiting *waiting =
		torsh_launches_find(&state->waiting, activity->record.correlation);

	if (!waiting)
		return false;
	activity->has_launch = true;
	activity->launch = waiting->launch;
	activity->stack = activity->stack ? activity->stack : activity->launch.stack;
	activity->index = waiting->n_told++;
	if (waiting->n_told == waiting->n_awaited)
		torsh_launches_remove(&state->waiting, waiting);
	report(join, state, activity, KERNEL_NO_OPERATOR);
	return true;
}

/* ---- what comes too early -------------------------------------------------------------------- */

static struct early_list *list_of(struct process_state *state, uint32_t correlation)
{
	struct key_slot *slot = torsh_key_index_find(&state->index, correlation);

	if (slot->key)
		return &state->lists[slot->number];
	state->lists = torsh_array_reserve(state->lists, state->n_lists, &state->lists_room,
					   sizeof(*state->lists));
	state->lists[state->n_lists] = (struct early_list){.first = NO_ROW};
	torsh_key_index_fill(&state->index, slot, correlation, (uint32_t)state->n_lists);
	return &state->lists[state->n_lists++];
}

static void keep_early(struct process_state *state, const struct device_activity *activity)
{
	struct early_list *list = list_of(state, activity->record.correlation);

	state->early = torsh_array_reserve(state->early, state->n_early, &state->early_room,
					   sizeof(*state->early));
	state->early[state->n_early] =
		(struct early_activity){.activity = *activity, .next = NO_ROW};
	if (list->first == NO_ROW)
		list->first = state->n_early;
	else
		state->early[list->last].next = state->n_early;
	list->last = state->n_early++;
}

/* Report the activities that came before their launch. */
static void report_early(struct device_join *join, struct process_state *state,
			 uint32_t correlation)
{
	const struct key_slot *slot = torsh_key_index_find(&state->index, correlation);
	struct early_list *list = slot->key ? &state->lists[slot->number] : NULL;

	if (!list)
		return;
	for (size_t i = list->first; i != NO_ROW; i = state->early[i].next) {
		report_with_launch(join, state, &state->early[i].activity);
		state->early[i].activity.process = NULL;
	}
	list->first = NO_ROW;
}

/* ---- the pass -------------------------------------------------------------------------------- */

static struct device_cause make_cause(const struct enclosing_spans *around)
{
	const struct module_chain *modules = torsh_enclosing_modules(around);
	const struct span *open = around->in_operator ? around->in_operator : around->innermost;
	struct device_cause cause = {
		.modules = modules,
		.module = modules ? modules->module : 0,
		.has_phase = open != NULL,
		.phase = open ? open->phase : 0,
	};

	if (around->in_operator) {
		cause.has_operator = true;
		cause.operator_span = around->in_operator->ordinal;
		cause.operator_name = around->in_operator->name;
	}
	return cause;
}

/* Other timed calls report the same fields as launches. */
static struct event_launch said_of(const struct event *event)
{
	const struct event_device_call *call = &event->device_call;

	if (event->id == EVENT_LAUNCH)
		return event->launch;
	return (struct event_launch){.api = call->api,
				     .correlation = call->correlation,
				     .result = call->result,
				     .context = call->context,
				     .begin = call->begin,
				     .duration_ns = call->duration_ns};
}

static struct device_launch make_launch(const struct timeline_event *event,
					const struct enclosing_spans *around,
					const struct device_cause *cause)
{
	const struct event_launch said = said_of(&event->event);
	struct device_launch launch = {
		.correlation = said.correlation,
		.api = said.api,
		.result = (int32_t)said.result,
		.thread = event->thread,
		.begin_ns = said.begin,
		.duration_ns = said.duration_ns,
		.cause = *cause,
		.stack = event->stack,
	};

	launch.shown_ns = said.begin > around->last_ns ? said.begin : around->last_ns;
	launch.shown_ns = launch.shown_ns < event->at_ns ? launch.shown_ns : event->at_ns;
	launch.shown_end_ns = said.begin + said.duration_ns;
	if (launch.shown_end_ns > event->at_ns || launch.shown_end_ns < launch.shown_ns)
		launch.shown_end_ns = event->at_ns;
	return launch;
}

static void see_node(struct process_state *state, const struct timeline_event *event,
		     const struct device_cause *cause)
{
	const struct event_graph_node *node = &event->event.graph_node;

	torsh_graph_nodes_see(&state->stacks, node, event->stack);
	if (cause->has_operator) {
		state->captures =
			torsh_array_reserve(state->captures, state->n_captures,
					    &state->captures_room, sizeof(*state->captures));
		state->captures[state->n_captures++] = *cause;
	}
	torsh_graph_nodes_see(&state->nodes, node,
			      cause->has_operator ? (uint32_t)state->n_captures : 0);
}

void torsh_device_join_launch(struct device_join *join, const struct recorded_process *process,
			      const struct timeline_event *event,
			      const struct enclosing_spans *around)
{
	struct process_state *state = find_state(join, process);
	struct device_cause cause = make_cause(around);
	struct device_caused caused;
	struct device_launch launch;

	if (join->visitor->own && event->event.id != EVENT_DEVICE_CALL)
		cause.own = join->visitor->own(join->context, process, event, around);
	if (event->event.id == EVENT_GRAPH_NODE) {
		see_node(state, event, &cause);
		return;
	}
	launch = make_launch(event, around, &cause);
	if (event->event.id == EVENT_DEVICE_CALL) {
		if (join->visitor->call)
			join->visitor->call(join->context, process, &launch);
		return;
	}
	caused = torsh_device_work_by(state->work, launch.correlation);
	launch.n_caused = caused.n;
	if (join->visitor->launch)
		join->visitor->launch(join->context, process, &launch);
	caused.n_untimed = join->visitor->wants_untimed ? caused.n_untimed : 0;
	if (!caused.n && !caused.n_untimed)
		return;
	torsh_launches_add(&state->waiting, &launch, caused.n + caused.n_untimed);
	if (state->n_early)
		report_early(join, state, launch.correlation);
}

void torsh_device_join_event(struct device_join *join, const struct recorded_process *process,
			     const struct event *event)
{
	struct device_activity activity = {.process = process};
	struct process_state *state;

	if (!torsh_activity_record(event, &activity.record) &&
	    !(join->visitor->wants_untimed && torsh_activity_untimed(event, &activity.record)))
		return;
	state = find_state(join, process);
	activity.event = *event;
	activity.stack = torsh_graph_nodes_find(&state->stacks, activity.record.node);
	activity.has_node_stack = activity.stack != 0;
	if (!activity.record.correlation)
		report(join, state, &activity, KERNEL_NO_LAUNCH);
	else if (report_with_launch(join, state, &activity))
		return;
	else if (torsh_device_work_by(state->work, activity.record.correlation).is_launched)
		keep_early(state, &activity);
	else
		report(join, state, &activity, KERNEL_NOT_SEEN);
}

static void end_state(struct device_join *join, struct process_state *state)
{
	for (size_t i = 0; i < state->n_early; i++) {
		if (state->early[i].activity.process)
			report(join, state, &state->early[i].activity, KERNEL_NOT_SEEN);
	}
	free(state->early);
	free(state->lists);
	free(state->captures);
	torsh_graph_nodes_destroy(&state->nodes);
	torsh_graph_nodes_destroy(&state->stacks);
	torsh_key_index_destroy(&state->index);
	torsh_launches_destroy(&state->waiting);
}

void torsh_device_join_destroy(struct device_join *join)
{
	for (size_t i = 0; i < join->n_states; i++)
		end_state(join, &join->states[i]);
	free(join->states);
	free(join);
}
