/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/profile/calls.h. */
#include "tools/profile/calls.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "tools/die.h"

#define THREADS_MAX (1u << 20) /* rows; a number beyond is made up */
#define DEPTH_MAX 4096u
#define SEQUENCES 65536u /* of forward calls whose modules are remembered: a power of two */

const char *const torsh_phase_names[N_PHASES] = {
#define PHASE(NAME, name) #name,
	CALL_PHASES
#undef PHASE
};

/* ---- calls that don't nest --------------------------------------------------------------------------------------- */

/* Ordinals of one process's calls. */
struct crossing_list {
	uint32_t process;
	uint64_t *ordinals;
	size_t n, n_room;
};

struct crossings {
	struct crossing_list *lists;
	size_t n, n_room;
};

struct crossings *torsh_crossings_create(void)
{
	return torsh_need(calloc(1, sizeof(struct crossings)));
}

void torsh_crossings_destroy(struct crossings *crossings)
{
	if (!crossings)
		return;
	for (size_t i = 0; i < crossings->n; i++)
		free(crossings->lists[i].ordinals);
	free(crossings->lists);
	free(crossings);
}

static struct crossing_list *find_list(const struct crossings *crossings, uint32_t process)
{
	for (size_t i = 0; crossings && i < crossings->n; i++) {
		if (crossings->lists[i].process == process)
			return &crossings->lists[i];
	}
	return NULL;
}

static void add_crossing(struct crossings *crossings, const struct call *call)
{
	struct crossing_list *list = find_list(crossings, call->process->number);

	if (!list) {
		crossings->lists = torsh_need_room(crossings->lists, crossings->n, &crossings->n_room, sizeof(*list));
		list = &crossings->lists[crossings->n++];
		list->process = call->process->number;
	}
	list->ordinals = torsh_need_room(list->ordinals, list->n, &list->n_room, sizeof(*list->ordinals));
	list->ordinals[list->n++] = call->ordinal;
}

static int compare_ordinals(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void sort_crossings(struct crossings *crossings)
{
	for (size_t i = 0; i < crossings->n; i++)
		qsort(crossings->lists[i].ordinals, crossings->lists[i].n, sizeof(uint64_t), compare_ordinals);
}

/* ---- the state of a walk ----------------------------------------------------------------------------------------- */

struct thread_state {
	struct call **calls; /* open ones, outermost first; behind them some to be used again */
	uint32_t n, n_made;
	size_t n_room;
};

struct process_state {
	const struct profile_process *process;
	struct thread_state *threads;
	size_t n_threads;
	void *async; /* tree of open asynchronous calls */
	uint64_t n_calls, last_ns;
	const struct crossing_list *known;
	size_t next_known;
	uint8_t *traits; /* by label */
	struct {
		uint64_t sequence;
		uint32_t module;
	} * modules; /* by sequence; made when there are modules */
};

struct walk {
	const struct calls_visitor *visitor;
	void *context;
	struct process_state *states;
	size_t n_states;
	struct process_state *last; /* of the event before */
	struct crossings *found;
	struct calls_counts counts;
};

static struct process_state *find_state(struct walk *walk, const struct profile_process *process)
{
	if (walk->last && walk->last->process == process)
		return walk->last;
	for (size_t i = 0; i < walk->n_states; i++) {
		if (walk->states[i].process == process)
			return walk->last = &walk->states[i];
	}
	return NULL;
}

static struct thread_state *find_thread(struct process_state *state, uint32_t thread)
{
	if (thread >= THREADS_MAX)
		return NULL;
	if (thread >= state->n_threads) {
		size_t n = state->n_threads ? state->n_threads : 16;

		while (n <= thread)
			n *= 2;
		state->threads = torsh_need_items(state->threads, state->n_threads, n, sizeof(*state->threads));
		state->n_threads = n;
	}
	return &state->threads[thread];
}

static bool begins_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), n_end = strlen(end);

	return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

static uint8_t find_traits(const char *name)
{
	uint8_t traits = NAME_SEEN;

	if (begins_with(name, "autograd::engine::evaluate_function"))
		traits |= NAME_BACKWARD;
	if (begins_with(name, "Optimizer.step#"))
		traits |= NAME_OPTIMIZER | NAME_OPTIMIZER_STEP;
	if (begins_with(name, "Optimizer.zero_grad#"))
		traits |= NAME_OPTIMIZER;
	if (begins_with(name, "enumerate(DataLoader)#"))
		traits |= NAME_DATA;
	if (begins_with(name, "ProfilerStep#"))
		traits |= NAME_PROFILER_STEP;
	if (ends_with(name, "Loss"))
		traits |= NAME_LOSS;
	return traits;
}

static uint8_t traits_of(struct process_state *state, uint32_t label)
{
	const char *name = torsh_timeline_label(state->process, label);

	if (!name)
		return NAME_SEEN;
	if (!state->traits)
		state->traits = torsh_need(calloc(state->process->n_functions + 1, 1));
	if (!state->traits[label])
		state->traits[label] = find_traits(name);
	return state->traits[label];
}

/* ---- asynchronous calls ------------------------------------------------------------------------------------------ */

/* By what its end will name: an operator's record, a range's number. */
static int compare_async(const void *a, const void *b)
{
	const struct call *x = a, *y = b;
	uint64_t key_x = x->kind == CALL_OPERATOR ? x->record : x->range;
	uint64_t key_y = y->kind == CALL_OPERATOR ? y->record : y->range;

	if (x->kind != y->kind)
		return (x->kind > y->kind) - (x->kind < y->kind);
	return (key_x > key_y) - (key_x < key_y);
}

static void finish_call(struct walk *walk, struct call *call, uint64_t at_ns, uint32_t thread)
{
	call->end_ns = at_ns > call->start_ns ? at_ns : call->start_ns;
	call->end_thread = thread;
	walk->counts.n_cut += call->is_cut;
	if (walk->visitor->end)
		walk->visitor->end(walk->context, call);
}

static void keep_async(struct walk *walk, struct process_state *state, struct call *call)
{
	struct call **found;

	call->is_async = true;
	call->outer = NULL;
	found = torsh_need(tsearch(call, &state->async, compare_async));
	if (*found == call)
		return;
	/* Numbers come again: the end of the older one was lost. */
	(*found)->is_cut = true;
	finish_call(walk, *found, call->start_ns, call->thread);
	free(*found);
	*found = call;
}

static bool end_async(struct walk *walk, struct process_state *state, enum call_kind kind, uint64_t number,
		      uint64_t at_ns, uint32_t thread)
{
	const struct call key = {.kind = kind, .record = (uint32_t)number, .range = number};
	struct call **found = tfind(&key, &state->async, compare_async), *call;

	if (!found)
		return false;
	call = *found;
	tdelete(call, &state->async, compare_async);
	finish_call(walk, call, at_ns, thread);
	free(call);
	return true;
}

/* ---- begins ------------------------------------------------------------------------------------------------------ */

/* The call a begin makes at this place of its thread; used again when it was there before. */
static struct call *make_call(struct thread_state *thread)
{
	struct call *call;

	if (thread->n == thread->n_made) {
		thread->calls = torsh_need_room(thread->calls, thread->n, &thread->n_room, sizeof(*thread->calls));
		thread->calls[thread->n_made++] = torsh_need(malloc(sizeof(*call)));
	}
	call = thread->calls[thread->n];
	memset(call, 0, sizeof(*call));
	return call;
}

/* The innermost of the first n open calls that nests, or NULL. */
static struct call *innermost_of(const struct thread_state *thread, uint32_t n)
{
	while (n && thread->calls[n - 1]->is_async)
		n--;
	return n ? thread->calls[n - 1] : NULL;
}

/* Takes it from its place, which gets another to be used again. Returns the call, the caller's now. */
static struct call *take_out(struct thread_state *thread, uint32_t i)
{
	struct call *call = thread->calls[i];

	memmove(thread->calls + i, thread->calls + i + 1, (thread->n - i - 1) * sizeof(*thread->calls));
	thread->calls[--thread->n] = torsh_need(malloc(sizeof(*call)));
	for (; i < thread->n; i++)
		thread->calls[i]->outer = thread->calls[i]->is_async ? NULL : innermost_of(thread, i);
	return call;
}

static bool is_known_crossing(struct process_state *state, uint64_t ordinal)
{
	const struct crossing_list *known = state->known;

	if (!known || state->next_known == known->n || known->ordinals[state->next_known] != ordinal)
		return false;
	state->next_known++;
	return true;
}

static enum call_phase phase_of(const struct call *call, const struct call *outer)
{
	if (call->traits & NAME_OPTIMIZER)
		return PHASE_OPTIMIZER;
	if (call->traits & NAME_DATA)
		return PHASE_DATA;
	if ((call->kind == CALL_OPERATOR && call->scope == OP_BACKWARD) || call->traits & NAME_BACKWARD)
		return PHASE_BACKWARD;
	if (outer && outer->phase != PHASE_FORWARD)
		return outer->phase;
	return call->is_module && call->traits & NAME_LOSS ? PHASE_LOSS : PHASE_FORWARD;
}

/* Backward runs without modules: it belongs to that of the forward call with its sequence number. */
static void find_module(struct process_state *state, struct call *call, const struct call *outer)
{
	size_t slot = call->sequence & (SEQUENCES - 1);
	bool has_sequence = call->kind == CALL_OPERATOR && call->sequence != OP_NO_SEQUENCE;

	if (outer)
		call->module = outer->is_module ? outer->name : outer->module;
	if (call->module && has_sequence && call->phase != PHASE_BACKWARD) {
		if (!state->modules)
			state->modules = torsh_need(calloc(SEQUENCES, sizeof(*state->modules)));
		state->modules[slot].sequence = call->sequence;
		state->modules[slot].module = call->module;
	}
	if (call->phase == PHASE_BACKWARD && has_sequence && state->modules &&
	    state->modules[slot].sequence == call->sequence)
		call->module = state->modules[slot].module;
}

/* call has what the event said; it is put around what comes. */
static void begin_call(struct walk *walk, struct process_state *state, struct thread_state *thread, struct call *call)
{
	struct call *outer = innermost_of(thread, thread->n);

	call->traits = traits_of(state, call->name);
	call->phase = phase_of(call, outer);
	find_module(state, call, outer);
	call->ordinal = state->n_calls++;
	walk->counts.n_calls++;
	thread->n++;
	call->is_async = is_known_crossing(state, call->ordinal);
	if (!call->is_async) {
		call->outer = outer;
		call->is_counted = outer && outer->is_counted;
	} else if (call->kind == CALL_OPERATOR) {
		/* A range stays: its end looks for it on the thread. */
		keep_async(walk, state, take_out(thread, thread->n - 1));
	}
	if (walk->visitor->begin)
		walk->visitor->begin(walk->context, call);
}

static bool is_too_deep(struct walk *walk, const struct thread_state *thread)
{
	if (thread && thread->n < DEPTH_MAX)
		return false;
	walk->counts.n_too_deep++;
	return true;
}

static void begin_operator(struct walk *walk, struct process_state *state, const struct timeline_event *event)
{
	const struct event_op_begin *begin = &event->event.op_begin;
	struct thread_state *thread = find_thread(state, event->thread);
	struct call *call;

	if (is_too_deep(walk, thread))
		return;
	call = make_call(thread);
	call->process = state->process;
	call->kind = CALL_OPERATOR;
	call->name = begin->name;
	call->inputs = begin->inputs;
	call->scope = begin->scope;
	call->flags = begin->flags;
	call->record = begin->record;
	call->forward_thread = begin->forward_thread;
	call->sequence = begin->sequence;
	call->thread = event->thread;
	call->stack = event->stack;
	call->start_ns = event->at_ns;
	begin_call(walk, state, thread, call);
}

static void begin_range(struct walk *walk, struct process_state *state, const struct timeline_event *event)
{
	const struct event_range_push *push = &event->event.range_push;
	struct thread_state *thread = find_thread(state, event->thread);
	struct call *call;

	if (is_too_deep(walk, thread))
		return;
	call = make_call(thread);
	call->process = state->process;
	call->kind = CALL_RANGE;
	call->is_module = push->source == RANGE_BY_MODULE;
	call->name = push->name;
	call->domain = push->domain;
	call->category = push->category;
	call->source = push->source;
	call->color = push->color;
	call->payload_type = push->payload_type;
	call->payload = push->payload;
	call->sequence = OP_NO_SEQUENCE;
	call->thread = event->thread;
	call->stack = event->stack;
	call->start_ns = event->at_ns;
	begin_call(walk, state, thread, call);
}

/* A range that any thread may end never nests. */
static void start_range(struct walk *walk, struct process_state *state, const struct timeline_event *event)
{
	const struct event_range_start *start = &event->event.range_start;
	struct call *call = torsh_need(calloc(1, sizeof(*call)));

	call->process = state->process;
	call->kind = CALL_RANGE;
	call->name = start->name;
	call->domain = start->domain;
	call->category = start->category;
	call->source = start->source;
	call->color = start->color;
	call->payload_type = start->payload_type;
	call->payload = start->payload;
	call->range = start->range;
	call->sequence = OP_NO_SEQUENCE;
	call->thread = event->thread;
	call->stack = event->stack;
	call->start_ns = event->at_ns;
	call->traits = traits_of(state, call->name);
	call->ordinal = state->n_calls++;
	walk->counts.n_calls++;
	keep_async(walk, state, call);
	if (walk->visitor->begin)
		walk->visitor->begin(walk->context, call);
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static void note_crossing(struct walk *walk, const struct call *call)
{
	if (walk->found)
		add_crossing(walk->found, call);
}

struct call *torsh_call_outer_operator(const struct call *call)
{
	struct call *outer = call->outer;

	while (outer && outer->kind != CALL_OPERATOR)
		outer = outer->outer;
	return outer;
}

static struct call *outer_module(const struct call *call)
{
	struct call *outer = call->outer;

	while (outer && !outer->is_module)
		outer = outer->outer;
	return outer;
}

/* What a call was, for the one of its kind around it. */
static void add_to_outer(const struct call *call)
{
	struct call *outer = call->kind == CALL_OPERATOR ? torsh_call_outer_operator(call)
			     : call->is_module		 ? outer_module(call)
							 : NULL;

	if (!outer)
		return;
	outer->inner_ns += call->end_ns - call->start_ns;
	outer->n_inner++;
	outer->flops += call->flops;
	outer->flops_all += call->flops_all;
	outer->allocated_bytes += call->allocated_bytes;
	outer->freed_bytes += call->freed_bytes;
	outer->device_ns += call->device_ns;
	outer->has_counted = outer->has_counted || call->has_counted;
}

/* Call i of the thread ends. */
static void end_call(struct walk *walk, struct thread_state *thread, uint32_t i, uint64_t at_ns, uint32_t by_thread)
{
	struct call *call = thread->calls[i];

	finish_call(walk, call, at_ns, by_thread);
	add_to_outer(call);
	if (i + 1 == thread->n)
		thread->n--;
	else
		free(take_out(thread, i));
}

/* Call i doesn't nest, as its end shows. */
static void end_crossing(struct walk *walk, struct thread_state *thread, uint32_t i, uint64_t at_ns, uint32_t by_thread)
{
	struct call *call = take_out(thread, i);

	note_crossing(walk, call);
	call->is_async = true;
	call->outer = NULL;
	finish_call(walk, call, at_ns, by_thread);
	free(call);
}

/* What an operator's own thread leaves open inside of it was begun to outlive it. */
static void let_go(struct walk *walk, struct process_state *state, struct thread_state *thread, uint32_t i)
{
	while (++i < thread->n) {
		struct call *call = thread->calls[i];

		if (call->is_async)
			continue;
		note_crossing(walk, call);
		call->is_async = true;
		call->outer = NULL;
		if (call->kind == CALL_OPERATOR)
			keep_async(walk, state, take_out(thread, i--));
	}
}

/* Call i of the thread ends, by that thread or another one. */
static void end_somewhere(struct walk *walk, struct process_state *state, struct thread_state *thread, uint32_t i,
			  uint64_t at_ns, uint32_t by_thread)
{
	const struct call *call = thread->calls[i];
	bool is_own = by_thread == call->thread;

	if (call->kind == CALL_OPERATOR && is_own)
		let_go(walk, state, thread, i);
	/* Ended from elsewhere it is asynchronous even where it happens to be the innermost. */
	if (call->is_async || (is_own && innermost_of(thread, thread->n) == call))
		end_call(walk, thread, i, at_ns, by_thread);
	else
		end_crossing(walk, thread, i, at_ns, by_thread);
}

static bool is_record(const struct call *call, uint32_t record)
{
	return call->kind == CALL_OPERATOR && call->record == record;
}

/* The place of the open operator with that record, or UINT32_MAX. */
static uint32_t find_record(const struct thread_state *thread, uint32_t record)
{
	for (uint32_t i = thread->n; i; i--) {
		if (is_record(thread->calls[i - 1], record))
			return i - 1;
	}
	return UINT32_MAX;
}

static void end_operator(struct walk *walk, struct process_state *state, const struct timeline_event *event)
{
	uint32_t record = event->event.op_end.record, place;
	struct thread_state *thread = find_thread(state, event->thread);

	if (thread && thread->n && is_record(thread->calls[thread->n - 1], record)) {
		end_call(walk, thread, thread->n - 1, event->at_ns, event->thread);
		return;
	}
	place = thread ? find_record(thread, record) : UINT32_MAX;
	if (place == UINT32_MAX && end_async(walk, state, CALL_OPERATOR, record, event->at_ns, event->thread))
		return;
	for (size_t i = 0; i < state->n_threads && place == UINT32_MAX; i++) {
		thread = &state->threads[i];
		place = find_record(thread, record);
	}
	if (place == UINT32_MAX)
		walk->counts.n_unmatched++;
	else
		end_somewhere(walk, state, thread, place, event->at_ns, event->thread);
}

static void end_range(struct walk *walk, struct process_state *state, const struct timeline_event *event)
{
	const struct event_range_pop *pop = &event->event.range_pop;
	struct thread_state *thread = find_thread(state, event->thread);

	for (uint32_t i = thread ? thread->n : 0; i; i--) {
		const struct call *call = thread->calls[i - 1];

		if (call->kind != CALL_RANGE || call->domain != pop->domain || call->source != pop->source)
			continue;
		end_somewhere(walk, state, thread, i - 1, event->at_ns, event->thread);
		return;
	}
	walk->counts.n_unmatched++;
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

static struct call *innermost_operator(struct process_state *state, uint32_t thread_row)
{
	const struct thread_state *thread = thread_row < state->n_threads ? &state->threads[thread_row] : NULL;

	for (uint32_t i = thread ? thread->n : 0; i; i--) {
		if (thread->calls[i - 1]->kind == CALL_OPERATOR)
			return thread->calls[i - 1];
	}
	return NULL;
}

static int take_event(void *context, const struct profile_process *process, const struct timeline_event *event)
{
	struct walk *walk = context;
	struct process_state *state = find_state(walk, process);

	if (!state)
		return 0;
	walk->counts.n_events++;
	if (event->at_ns > state->last_ns)
		state->last_ns = event->at_ns;
	switch (event->event.id) {
	case EVENT_OP_BEGIN:
		begin_operator(walk, state, event);
		return 0;
	case EVENT_OP_END:
		end_operator(walk, state, event);
		return 0;
	case EVENT_RANGE_PUSH:
		begin_range(walk, state, event);
		return 0;
	case EVENT_RANGE_POP:
		end_range(walk, state, event);
		return 0;
	case EVENT_RANGE_START:
		start_range(walk, state, event);
		return 0;
	case EVENT_RANGE_END:
		walk->counts.n_unmatched +=
			!end_async(walk, state, CALL_RANGE, event->event.range_end.range, event->at_ns, event->thread);
		return 0;
	default:
		if (walk->visitor->event)
			walk->visitor->event(walk->context, process, event, innermost_operator(state, event->thread));
		return 0;
	}
}

/* End what is open, the innermost first, and let go of everything. */
static void close_state(struct walk *walk, struct process_state *state)
{
	for (size_t i = 0; i < state->n_threads; i++) {
		struct thread_state *thread = &state->threads[i];

		while (thread->n) {
			struct call *call = thread->calls[thread->n - 1];

			call->is_cut = true;
			end_call(walk, thread, thread->n - 1, state->last_ns, call->thread);
		}
		for (uint32_t k = 0; k < thread->n_made; k++)
			free(thread->calls[k]);
		free(thread->calls);
	}
	while (state->async) {
		struct call *call = *(struct call **)state->async;

		call->is_cut = true;
		end_async(walk, state, call->kind, call->kind == CALL_OPERATOR ? call->record : call->range,
			  state->last_ns, call->thread);
	}
	free(state->threads);
	free(state->traits);
	free(state->modules);
}

int torsh_calls_walk(const struct profile *profile, struct profile_process *const *processes, size_t n_processes,
		     const struct crossings *known, struct crossings *found, const struct calls_visitor *visitor,
		     void *context, struct calls_counts *counts)
{
	struct walk walk = {.visitor = visitor, .context = context, .n_states = n_processes, .found = found};
	int rc;

	walk.states = torsh_need_items(NULL, 0, n_processes, sizeof(*walk.states));
	for (size_t i = 0; i < n_processes; i++) {
		walk.states[i].process = processes[i];
		walk.states[i].known = find_list(known, processes[i]->number);
	}
	rc = torsh_timeline_walk(profile, take_event, &walk);
	for (size_t i = 0; i < n_processes; i++)
		close_state(&walk, &walk.states[i]);
	free(walk.states);
	if (found)
		sort_crossings(found);
	if (counts)
		*counts = walk.counts;
	return rc;
}

const char *torsh_call_name(const struct call *call)
{
	const char *name = torsh_timeline_label(call->process, call->name);

	return name && *name ? name : "?";
}
