/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/whatif/module_calls.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/memory/whatif/result_shape.h"
#include "tools/timeline/inputs.h"

struct walker {
	struct module_calls *calls;
	const char *module;
	const struct recorded_process *process;
	const struct span *open; /* the matching module's span; NULL: none is open */
	const struct span *outermost; /* the open call's operator that runs; NULL: none */
};

bool torsh_module_is(const char *label, const char *module)
{
	const char *colon = strrchr(label, ':'), *dot = strchr(label, '.');
	size_t n = strlen(module);

	if (strcmp(label, module) == 0 || (colon && strcmp(colon + 1, module) == 0))
		return true;
	if (!colon)
		return false;
	if ((size_t)(colon - label) == n && strncmp(label, module, n) == 0)
		return true;
	/* The path without the root's name, as named_modules() has it. */
	return dot && dot < colon && (size_t)(colon - dot - 1) == n &&
	       strncmp(dot + 1, module, n) == 0;
}

static bool is_meant(const struct walker *walker, uint32_t label)
{
	const char *text = torsh_timeline_label(walker->process, label);

	return text && torsh_module_is(text, walker->module);
}

static void begin_call(struct walker *walker, const struct span *span)
{
	struct module_calls *calls = walker->calls;

	calls->items =
		torsh_array_reserve(calls->items, calls->n, &calls->n_room, sizeof(*calls->items));
	calls->items[calls->n++] = (struct module_call){.start_ns = span->start_ns,
							.thread = span->thread,
							.first_operator = calls->n_operators,
							.first_sequence = OP_NO_SEQUENCE};
	walker->open = span;
	walker->outermost = NULL;
}

static struct call_operator operator_of(const struct span *span)
{
	const char *name = torsh_span_name(span);
	struct call_operator operator= {.start_ns = span->start_ns, .end_ns = span->start_ns};
	struct inputs inputs;

	operator.is_in_place = name && * name && name[strlen(name) - 1] == '_';
	torsh_inputs_parse(&inputs, torsh_timeline_label(span->process, span->inputs));
	for (uint32_t i = 0; i < inputs.n_items && operator.n_inputs<CALL_INPUTS_MAX; i++) {
		const struct input *input = &inputs.items[i];

		if (input->kind == INPUT_TENSOR && !input->is_meta)
			operator.input_bytes[operator.n_inputs++] = torsh_input_elements(input) *
					     torsh_input_item_bytes(input);
	}
	return operator;
}

static void add_outermost(struct module_calls *calls, const struct span *span)
{
	calls->operators = torsh_array_reserve(calls->operators, calls->n_operators,
					       &calls->operators_room, sizeof(*calls->operators));
	calls->operators[calls->n_operators++] = operator_of(span);
}

/* Note an operator of the open call, or the first one after the last call. */
static void see_outermost(struct walker *walker, const struct span *span)
{
	struct module_calls *calls = walker->calls;
	struct module_call *call = calls->n ? &calls->items[calls->n - 1] : NULL;

	if (!call || span->thread != call->thread || torsh_span_outer_operator(span))
		return;
	if (walker->open) {
		call->n_operators++;
		walker->outermost = span;
	} else if (calls->n_operators > call->first_operator + call->n_operators) {
		return;
	}
	add_outermost(calls, span);
}

/* Count an operator to the open call. */
static void add_operator(struct walker *walker, const struct span *span)
{
	struct module_call *call = &walker->calls->items[walker->calls->n - 1];

	if (span->thread != call->thread || span->sequence == OP_NO_SEQUENCE)
		return;
	if (call->first_sequence == OP_NO_SEQUENCE)
		call->first_sequence = span->sequence;
	call->last_sequence = span->sequence;
}

static bool is_of_module(const struct walker *walker, const struct span *span)
{
	for (const struct module_chain *chain = span->modules; chain; chain = chain->outer) {
		if (is_meant(walker, chain->module))
			return true;
	}
	return false;
}

/* Find the call by the backward operator's number; the last call that fits. */
static void begin_backward(struct walker *walker, const struct span *span)
{
	struct module_calls *calls = walker->calls;

	if (span->sequence == OP_NO_SEQUENCE || !is_of_module(walker, span))
		return;
	for (size_t i = calls->n; i-- > 0;) {
		struct module_call *call = &calls->items[i];

		if (span->sequence < call->first_sequence || span->sequence > call->last_sequence)
			continue;
		if (!call->backward_ns)
			call->backward_ns = span->start_ns;
		return;
	}
}

static void see_begin(void *context, struct span *span)
{
	struct walker *walker = context;

	if (span->process != walker->process)
		return;
	if (span->kind == SPAN_OPERATOR && span->phase != PHASE_BACKWARD)
		see_outermost(walker, span);
	if (span->is_module && !walker->open && span->phase != PHASE_BACKWARD &&
	    is_meant(walker, span->name))
		begin_call(walker, span);
	else if (span->kind == SPAN_OPERATOR && span->phase == PHASE_BACKWARD)
		begin_backward(walker, span);
	else if (span->kind == SPAN_OPERATOR && walker->open)
		add_operator(walker, span);
}

static void see_end(void *context, struct span *span)
{
	struct walker *walker = context;

	if (span == walker->outermost) {
		walker->calls->operators[walker->calls->n_operators - 1].end_ns = span->end_ns;
		walker->outermost = NULL;
	}
	if (span != walker->open)
		return;
	walker->calls->items[walker->calls->n - 1].end_ns = span->end_ns;
	walker->open = NULL;
}

void torsh_module_calls_collect(struct module_calls *calls, const char *module,
				const struct recording *recording, struct recorded_process *process,
				const struct prepass *prepass)
{
	static const struct span_visitor visitor = {.begin = see_begin, .end = see_end};
	struct walker walker = {.calls = calls, .module = module, .process = process};
	int rc;

	*calls = (struct module_calls){0};
	rc = torsh_spans_visit(recording, &process, 1, prepass->unnested, NULL, &visitor, &walker,
			       NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", recording->path, strerror(-rc));
}

void torsh_module_calls_free(struct module_calls *calls)
{
	free(calls->items);
	free(calls->operators);
}
