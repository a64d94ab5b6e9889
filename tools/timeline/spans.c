/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/spans.h"

#include <stdlib.h>

#include "tools/base/die.h"
#include "tools/timeline/async_spans.h"
#include "tools/timeline/module_chains.h"
#include "tools/timeline/open_spans.h"
#include "tools/timeline/prepass/unnested_spans.h"
#include "tools/timeline/span_phase.h"

#define THREADS_LOST (1u << 20) /* thread numbers without a row before the pass stops adding rows */

/* ---- the state of a pass --------------------------------------------------------------------- */

struct process_state {
	const struct recorded_process *process;
	struct open_threads threads;
	struct async_spans async;
	uint64_t n_spans, last_ns;
	const struct unnested_list *known;
	size_t next_known;
	uint8_t *traits; /* by label */
	struct module_chains chains;
};

struct walk {
	const struct span_visitor *visitor;
	void *context;
	struct process_state *states;
	size_t n_states;
	struct process_state *last; /* of the previous event */
	struct unnested_spans *found;
	struct span_counts counts;
};

static struct process_state *find_state(struct walk *walk, const struct recorded_process *process)
{
	if (walk->last && walk->last->process == process)
		return walk->last;
	for (size_t i = 0; i < walk->n_states; i++) {
		if (walk->states[i].process == process)
			return walk->last = &walk->states[i];
	}
	return NULL;
}

static struct open_spans *find_thread(struct process_state *state, uint32_t thread)
{
	if (thread >= state->process->n_threads + THREADS_LOST)
		return NULL;
	return torsh_sparse_array_at(&state->threads.all, thread);
}

static uint8_t traits_of(struct process_state *state, uint32_t label)
{
	const char *name = torsh_timeline_label(state->process, label);

	if (!name)
		return NAME_SEEN;
	if (!state->traits)
		state->traits = torsh_need(calloc(state->process->tables->n_functions + 1, 1));
	if (!state->traits[label])
		state->traits[label] = torsh_name_traits(name);
	return state->traits[label];
}

/* ---- asynchronous spans ---------------------------------------------------------------------- */

static void finish_span(struct walk *walk, struct span *span, uint64_t at_ns, uint32_t thread)
{
	span->end_ns = at_ns > span->start_ns ? at_ns : span->start_ns;
	span->end_thread = thread;
	walk->counts.n_cut += span->is_cut;
	if (walk->visitor->end)
		walk->visitor->end(walk->context, span);
}

static void keep_async(struct walk *walk, struct process_state *state, struct span *span)
{
	struct span *older;

	span->is_async = true;
	span->outer = NULL;
	older = torsh_async_spans_add(&state->async, span);
	if (!older)
		return;
	/* Numbers are reused: the older span's end was lost. */
	older->is_cut = true;
	finish_span(walk, older, span->start_ns, span->thread);
	free(older);
}

static bool end_async(struct walk *walk, struct process_state *state, enum span_kind kind,
		      uint64_t number, const struct timeline_event *event)
{
	struct span *span = torsh_async_spans_take(&state->async, kind, number);

	if (!span)
		return false;
	finish_span(walk, span, event->at_ns, event->thread);
	free(span);
	return true;
}

static struct span *innermost_on(const struct process_state *state, uint32_t thread)
{
	const struct open_spans *open = torsh_sparse_array_find(&state->threads.all, thread);

	return open ? torsh_open_spans_operator(open) : NULL;
}

/* ---- begins ---------------------------------------------------------------------------------- */

static bool is_known_crossing(struct process_state *state, uint64_t ordinal)
{
	const struct unnested_list *known = state->known;

	if (!known || state->next_known == known->n ||
	    known->ordinals[state->next_known] != ordinal)
		return false;
	state->next_known++;
	return true;
}

/* Open the span, with the fields that the event reported, around those that follow. */
static void begin_span(struct walk *walk, struct process_state *state, struct open_spans *thread,
		       struct span *span)
{
	struct span *outer = torsh_open_spans_innermost(thread, thread->n);

	span->traits = traits_of(state, span->name);
	torsh_span_set_phase(span, outer);
	torsh_module_chains_place(&state->chains, span, outer);
	span->ordinal = state->n_spans++;
	walk->counts.n_spans++;
	thread->n++;
	torsh_open_threads_list(&state->threads, thread);
	span->is_async = is_known_crossing(state, span->ordinal);
	if (!span->is_async) {
		span->outer = outer;
		span->is_counted = outer && outer->is_counted;
	} else if (span->kind == SPAN_OPERATOR) {
		/* A range stays on its thread, where its end looks for it. */
		keep_async(walk, state, torsh_open_spans_take(thread, thread->n - 1));
	}
	if (walk->visitor->begin)
		walk->visitor->begin(walk->context, span);
}

static bool is_too_deep(struct walk *walk, const struct open_spans *thread)
{
	if (thread && thread->n < SPANS_DEPTH_MAX)
		return false;
	walk->counts.n_too_deep++;
	return true;
}

/* Fill a zeroed span with what all events that begin a span report. */
static void fill_span(struct span *span, const struct process_state *state,
		      const struct timeline_event *event, enum span_kind kind, uint32_t name)
{
	span->process = state->process;
	span->kind = kind;
	span->name = name;
	span->sequence = OP_NO_SEQUENCE;
	span->thread = event->thread;
	span->stack = event->stack;
	span->start_ns = event->at_ns;
}

/* Fields that the events which begin a range share: range_push and range_start. */
#define FILL_RANGE(span, from)                       \
	(span)->domain = (from)->domain;             \
	(span)->category = (from)->category;         \
	(span)->source = (from)->source;             \
	(span)->color = (from)->color;               \
	(span)->payload_type = (from)->payload_type; \
	(span)->payload = (from)->payload

static void begin_operator(struct walk *walk, struct process_state *state,
			   const struct timeline_event *event)
{
	const struct event_op_begin *begin = &event->event.op_begin;
	struct open_spans *thread = find_thread(state, event->thread);
	struct span *span;

	if (is_too_deep(walk, thread))
		return;
	span = torsh_open_spans_add(thread);
	fill_span(span, state, event, SPAN_OPERATOR, begin->name);
	span->inputs = begin->inputs;
	span->scope = begin->scope;
	span->flags = begin->flags;
	span->record = begin->record;
	span->forward_thread = begin->scope == OP_BACKWARD ? begin->forward_thread : thread->number;
	span->overload = begin->overload;
	span->sequence = begin->sequence;
	begin_span(walk, state, thread, span);
}

static void begin_range(struct walk *walk, struct process_state *state,
			const struct timeline_event *event)
{
	const struct event_range_push *push = &event->event.range_push;
	struct open_spans *thread = find_thread(state, event->thread);
	struct span *span;

	if (is_too_deep(walk, thread))
		return;
	span = torsh_open_spans_add(thread);
	fill_span(span, state, event, SPAN_RANGE, push->name);
	FILL_RANGE(span, push);
	span->is_module = push->source == RANGE_BY_MODULE;
	begin_span(walk, state, thread, span);
}

/* A range that any thread may end never nests. */
static void start_range(struct walk *walk, struct process_state *state,
			const struct timeline_event *event)
{
	const struct event_range_start *start = &event->event.range_start;
	struct span *span = torsh_need(calloc(1, sizeof(*span)));

	fill_span(span, state, event, SPAN_RANGE, start->name);
	FILL_RANGE(span, start);
	span->range = start->range;
	span->traits = traits_of(state, span->name);
	span->ordinal = state->n_spans++;
	walk->counts.n_spans++;
	keep_async(walk, state, span);
	if (walk->visitor->begin)
		walk->visitor->begin(walk->context, span);
}

static struct event mark_of(const struct event_deferred *deferred)
{
	return (struct event){.id = EVENT_MARK,
			      .mark = {.name = deferred->name,
				       .domain = deferred->domain,
				       .category = deferred->category,
				       .source = deferred->source,
				       .color = deferred->color,
				       .payload_type = deferred->payload_type,
				       .payload = deferred->payload}};
}

/* A mark is reported as one, at its time; a range begins and ends at once. */
static void see_deferred(struct walk *walk, struct process_state *state,
			 const struct timeline_event *event)
{
	const struct event_deferred *deferred = &event->event.deferred;
	struct timeline_event at = *event;
	struct span span = {0};

	at.at_ns = deferred->begin;
	if (deferred->is_mark) {
		at.event = mark_of(deferred);
		if (walk->visitor->event)
			walk->visitor->event(walk->context, state->process, &at,
					     innermost_on(state, event->thread));
		return;
	}
	fill_span(&span, state, &at, SPAN_RANGE, deferred->name);
	FILL_RANGE(&span, deferred);
	span.traits = traits_of(state, span.name);
	span.ordinal = state->n_spans++;
	span.is_async = true;
	walk->counts.n_spans++;
	if (walk->visitor->begin)
		walk->visitor->begin(walk->context, &span);
	finish_span(walk, &span, deferred->begin + deferred->duration_ns, event->thread);
}

#undef FILL_RANGE

/* ---- ends ------------------------------------------------------------------------------------ */

static void note_crossing(struct walk *walk, const struct span *span)
{
	if (walk->found)
		torsh_unnested_spans_add(walk->found, span);
}

/* Add the span's sums to the enclosing span of the same kind. */
static void add_to_outer(const struct span *span)
{
	struct span *outer = span->kind == SPAN_OPERATOR ? torsh_span_outer_operator(span)
			     : span->is_module		 ? torsh_span_outer_module(span)
							 : NULL;

	if (!outer)
		return;
	outer->inner_ns += span->end_ns - span->start_ns;
	outer->n_inner++;
	outer->flops += span->flops;
	outer->flops_all += span->flops_all;
	outer->allocated_bytes += span->allocated_bytes;
	outer->freed_bytes += span->freed_bytes;
	outer->device_ns += span->device_ns;
	torsh_cpu_counts_add(&outer->counts, &span->counts);
	outer->has_counted = outer->has_counted || span->has_counted;
	outer->has_unknown = outer->has_unknown || span->has_unknown;
	outer->is_traced = outer->is_traced || span->is_traced;
}

/* Span i of the thread ends. */
static void end_span(struct walk *walk, struct open_spans *thread, uint32_t i, uint64_t at_ns,
		     uint32_t by_thread)
{
	struct span *span = thread->spans[i];

	finish_span(walk, span, at_ns, by_thread);
	add_to_outer(span);
	if (i + 1 == thread->n)
		thread->n--;
	else
		free(torsh_open_spans_take(thread, i));
}

/* Span i doesn't nest, as its end shows. */
static void end_crossing(struct walk *walk, struct open_spans *thread, uint32_t i, uint64_t at_ns,
			 uint32_t by_thread)
{
	struct span *span = torsh_open_spans_take(thread, i);

	note_crossing(walk, span);
	span->is_async = true;
	span->outer = NULL;
	finish_span(walk, span, at_ns, by_thread);
	free(span);
}

/* Spans that an operator leaves open on its own thread outlive it. */
static void let_go(struct walk *walk, struct process_state *state, struct open_spans *thread,
		   uint32_t i)
{
	while (++i < thread->n) {
		struct span *span = thread->spans[i];

		if (span->is_async)
			continue;
		note_crossing(walk, span);
		span->is_async = true;
		span->outer = NULL;
		if (span->kind == SPAN_OPERATOR)
			keep_async(walk, state, torsh_open_spans_take(thread, i--));
	}
}

/* Span i of the thread is ended by that thread or another one. */
static void end_somewhere(struct walk *walk, struct process_state *state, struct open_spans *thread,
			  uint32_t i, uint64_t at_ns, uint32_t by_thread)
{
	const struct span *span = thread->spans[i];
	bool is_own = by_thread == span->thread;

	if (span->kind == SPAN_OPERATOR && is_own)
		let_go(walk, state, thread, i);
	/*
	 * A span that another thread ends is asynchronous, even if it happens to be the innermost.
	 */
	if (span->is_async || (is_own && torsh_open_spans_innermost(thread, thread->n) == span))
		end_span(walk, thread, i, at_ns, by_thread);
	else
		end_crossing(walk, thread, i, at_ns, by_thread);
}

static void end_operator(struct walk *walk, struct process_state *state,
			 const struct timeline_event *event)
{
	uint32_t record = event->event.op_end.record, place;
	struct open_spans *thread = find_thread(state, event->thread);

	if (thread && thread->n && torsh_span_has_record(thread->spans[thread->n - 1], record)) {
		end_span(walk, thread, thread->n - 1, event->at_ns, event->thread);
		return;
	}
	place = thread ? torsh_open_spans_find(thread, record) : UINT32_MAX;
	if (place == UINT32_MAX && end_async(walk, state, SPAN_OPERATOR, record, event))
		return;
	if (place == UINT32_MAX)
		thread = torsh_open_threads_find(&state->threads, record, &place);
	if (place == UINT32_MAX)
		walk->counts.n_unmatched++;
	else
		end_somewhere(walk, state, thread, place, event->at_ns, event->thread);
}

static void end_range(struct walk *walk, struct process_state *state,
		      const struct timeline_event *event)
{
	const struct event_range_pop *pop = &event->event.range_pop;
	struct open_spans *thread = find_thread(state, event->thread);

	for (uint32_t i = thread ? thread->n : 0; i; i--) {
		const struct span *span = thread->spans[i - 1];

		if (span->kind != SPAN_RANGE || span->domain != pop->domain ||
		    span->source != pop->source)
			continue;
		end_somewhere(walk, state, thread, i - 1, event->at_ns, event->thread);
		return;
	}
	walk->counts.n_unmatched++;
}

static void number_thread(struct walk *walk, struct process_state *state,
			  const struct timeline_event *event)
{
	struct open_spans *thread = find_thread(state, event->thread);

	(void)walk;
	if (thread)
		thread->number = event->event.op_thread.number;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void end_started_range(struct walk *walk, struct process_state *state,
			      const struct timeline_event *event)
{
	walk->counts.n_unmatched +=
		!end_async(walk, state, SPAN_RANGE, event->event.range_end.range, event);
}

/* Returns whether the event belongs to the thread that reports it, within its open spans. */
static bool is_of_its_thread(const struct event *event)
{
	return event->id == EVENT_LAUNCH || event->id == EVENT_DEVICE_CALL ||
	       event->id == EVENT_GRAPH_NODE;
}

static bool is_of_the_processor(const struct event *event)
{
	return event->id == EVENT_CPU_SAMPLE || torsh_cpu_counts_are_in(event);
}

static void report_around(struct walk *walk, struct process_state *state,
			  const struct timeline_event *event)
{
	struct open_spans *thread = torsh_sparse_array_find(&state->threads.all, event->thread);
	struct enclosing_spans around = {.in_operator = innermost_on(state, event->thread)};

	if (thread) {
		around.innermost = torsh_open_spans_innermost(thread, thread->n);
		around.last_ns = thread->last_ns;
	}
	if (is_of_the_processor(&event->event)) {
		walk->visitor->sample(walk->context, state->process, event, &around);
		return;
	}
	if (thread)
		thread->last_ns = event->at_ns;
	walk->visitor->launch(walk->context, state->process, event, &around);
}

static int take_event(void *context, const struct recorded_process *process,
		      const struct timeline_event *event)
{
	typedef void taker(struct walk * walk, struct process_state * state,
			   const struct timeline_event *event);
	static taker *const takers[EVENT_ID_END] = {
		[EVENT_OP_BEGIN] = begin_operator, [EVENT_OP_END] = end_operator,
		[EVENT_RANGE_PUSH] = begin_range,  [EVENT_RANGE_POP] = end_range,
		[EVENT_RANGE_START] = start_range, [EVENT_RANGE_END] = end_started_range,
		[EVENT_OP_THREAD] = number_thread, [EVENT_DEFERRED] = see_deferred,
	};
	struct walk *walk = context;
	struct process_state *state = find_state(walk, process);
	struct open_spans *thread;

	if (!state)
		return 0;
	walk->counts.n_events += !torsh_timeline_is_background(&event->event);
	walk->counts.n_samples += event->event.id == EVENT_CPU_SAMPLE;
	if (event->at_ns > state->last_ns)
		state->last_ns = event->at_ns;
	if (takers[event->event.id]) {
		takers[event->event.id](walk, state, event);
		thread = torsh_sparse_array_find(&state->threads.all, event->thread);
		if (thread)
			thread->last_ns = event->at_ns;
	} else if (walk->visitor->launch && is_of_its_thread(&event->event)) {
		report_around(walk, state, event);
	} else if (walk->visitor->sample && is_of_the_processor(&event->event)) {
		report_around(walk, state, event);
	} else if (walk->visitor->event) {
		walk->visitor->event(walk->context, process, event,
				     innermost_on(state, event->thread));
	}
	return 0;
}

static void close_async(struct walk *walk, struct process_state *state)
{
	size_t n;
	struct span **spans = torsh_async_spans_take_all(&state->async, &n);

	for (size_t i = 0; i < n; i++) {
		spans[i]->is_cut = true;
		finish_span(walk, spans[i], state->last_ns, spans[i]->thread);
		free(spans[i]);
	}
	free(spans);
}

/* End the open spans, innermost first, and free the state. */
static void close_state(struct walk *walk, struct process_state *state)
{
	struct open_spans *thread;

	for (size_t i = 0; (thread = torsh_sparse_array_next(&state->threads.all, &i)); i++) {
		while (thread->n) {
			struct span *span = thread->spans[thread->n - 1];

			span->is_cut = true;
			end_span(walk, thread, thread->n - 1, state->last_ns, span->thread);
		}
		for (uint32_t k = 0; k < thread->n_made; k++)
			free(thread->spans[k]);
		free(thread->spans);
	}
	close_async(walk, state);
	torsh_sparse_array_destroy(&state->threads.all);
	free(state->threads.busy);
	free(state->traits);
	torsh_module_chains_free(&state->chains);
}

int torsh_spans_visit(const struct recording *recording, struct recorded_process *const *processes,
		      size_t n_processes, const struct unnested_spans *known,
		      struct unnested_spans *found, const struct span_visitor *visitor,
		      void *context, struct span_counts *counts)
{
	struct walk walk = {
		.visitor = visitor, .context = context, .n_states = n_processes, .found = found};
	int rc;

	walk.states = torsh_need_items(NULL, 0, n_processes, sizeof(*walk.states));
	for (size_t i = 0; i < n_processes; i++) {
		walk.states[i].process = processes[i];
		torsh_sparse_array_create(&walk.states[i].threads.all, sizeof(struct open_spans));
		torsh_module_chains_create(&walk.states[i].chains);
		walk.states[i].known = torsh_unnested_spans_of(known, processes[i]->number);
	}
	rc = torsh_timeline_visit(recording, take_event, &walk);
	for (size_t i = 0; i < n_processes; i++)
		close_state(&walk, &walk.states[i]);
	free(walk.states);
	if (found)
		torsh_unnested_spans_sort(found);
	if (counts)
		*counts = walk.counts;
	return rc;
}
