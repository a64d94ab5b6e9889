/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/report/brief/suspects.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/wire/event.h"
#include "tools/analysis/findings_json.h"
#include "tools/analysis/rules.h"
#include "tools/base/die.h"
#include "tools/base/size.h"
#include "tools/report/brief/looped_calls.h"
#include "tools/timeline/inputs.h"

#define LAID_OUT_ANEW "aten::contiguous" /* a rule of its own: contiguous_copies */
#define NODES_A_STEP 10u /* fewer cost nothing that anyone sees */

const struct suspect_words torsh_suspects[N_SUSPECTS] = {
#define SUSPECT(NAME, name, limit, change, check) [SUSPECT_##NAME] = {#name, limit, change, check},
#include "tools/report/brief/suspects.def"
#undef SUSPECT
};

struct search {
	struct suspects *suspects;
	const struct time_scope *scope;
	size_t first, end; /* the intervals that count */
	uint64_t longest_ns[N_SUSPECTS];
	struct looped_calls loops;
	struct inputs inputs;
	bool has_inputs;
	uint64_t n_nodes, n_run, last_sequence;
};

static const struct span *outermost(const struct span *span)
{
	const struct span *outer = torsh_span_outer_operator(span);

	for (; outer && outer->scope == OP_FUNCTION; outer = torsh_span_outer_operator(outer))
		span = outer;
	return span;
}

static bool is_of_backward(const struct span *span)
{
	while (span && span->scope != OP_BACKWARD)
		span = torsh_span_outer_operator(span);
	return span;
}

static bool lays_out_anew(const struct span *span)
{
	while (span && strcmp(torsh_span_name(span), LAID_OUT_ANEW) != 0)
		span = torsh_span_outer_operator(span);
	return span;
}

static void name_operators(struct suspect *suspect, const struct span *span)
{
	suspect->n_operators = 0;
	for (; span && span->scope == OP_FUNCTION && suspect->n_operators < SUSPECT_OPERATORS;
	     span = torsh_span_outer_operator(span))
		suspect->operators[suspect->n_operators++] = torsh_span_name(span);
}

static void add(struct search *search, enum suspect_kind kind, const struct span *span, uint64_t ns)
{
	struct suspect *suspect = &search->suspects->items[kind];

	suspect->n++;
	suspect->ns += ns;
	if (ns < search->longest_ns[kind])
		return;
	search->longest_ns[kind] = ns;
	suspect->operator_name = torsh_span_name(outermost(span));
	suspect->stack = span->stack;
	name_operators(suspect, span);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* aten::copy_(self, source, non_blocking): what clones, lays out anew and converts ends there. */
static void see_copy(struct search *search, const struct span *span)
{
	const struct input *to = torsh_inputs_get(&search->inputs, 0);
	const struct input *from = torsh_inputs_get(&search->inputs, 1);

	/* Nobody can change what the framework copies in a backward pass. */
	if (is_of_backward(span) || lays_out_anew(span))
		return;
	if (!to || !from || to->kind != INPUT_TENSOR || from->kind != INPUT_TENSOR ||
	    to->n_type != from->n_type || memcmp(to->text, from->text, to->n_type))
		return;
	add(search, SUSPECT_SAME_COPIES, span, span->end_ns - span->start_ns);
}

/* ---- a graph that nobody uses ---------------------------------------------------------------- */

/* An operator has the number that the next node will get: it grows where one is made. */
static void see_graph(struct search *search, const struct span *span)
{
	struct suspect *suspect = &search->suspects->items[SUSPECT_UNUSED_GRAPH];

	if (span->scope == OP_BACKWARD) {
		search->n_run++;
		return;
	}
	if (span->scope != OP_FUNCTION || span->sequence == OP_NO_SEQUENCE)
		return;
	if (search->last_sequence && span->sequence > search->last_sequence) {
		search->n_nodes += span->sequence - search->last_sequence;
		suspect->operator_name = NULL;
		suspect->stack = span->stack ? span->stack : suspect->stack;
	}
	search->last_sequence = span->sequence;
}

/* ---- the pass -------------------------------------------------------------------------------- */

static uint64_t elements_of(const struct inputs *inputs)
{
	uint64_t elements = 0;

	for (uint32_t i = 0; i < inputs->n_items; i++) {
		if (inputs->items[i].kind == INPUT_TENSOR)
			elements += torsh_input_elements(&inputs->items[i]);
	}
	return elements;
}

/* Returns the step that it counts for, or STEP_NONE. */
static size_t step_of(const struct search *search, const struct span *span)
{
	size_t at = STEP_NONE;

	if (span->kind == SPAN_OPERATOR)
		at = torsh_scope_at(search->scope, span->start_ns);
	return at == STEP_NONE || at < search->first || at >= search->end ? STEP_NONE : at;
}

static void see_begin(void *context, struct span *span)
{
	struct search *search = context;

	if (step_of(search, span) != STEP_NONE)
		see_graph(search, span);
}

static void see_end(void *context, struct span *span)
{
	struct search *search = context;
	size_t at = step_of(search, span);
	const char *text;

	if (at == STEP_NONE || span->is_cut || span->scope == OP_USER || !span->inputs)
		return;
	text = torsh_timeline_label(span->process, span->inputs);
	torsh_inputs_parse(&search->inputs, text);
	search->has_inputs = search->has_inputs || search->inputs.n;
	if (strcmp(torsh_span_name(span), "aten::copy_") == 0)
		see_copy(search, span);
	if (span->scope == OP_FUNCTION)
		torsh_looped_calls_add(&search->loops, span, at, elements_of(&search->inputs));
}

static const char *why_not(const struct metrics_process *of, uint64_t whole_ns)
{
	if (of->n_devices || of->n_calls || (of->has_mode && of->mode.mode != DEVICE_HOST_ONLY))
		return "a device was used: operators only launch what it does";
	if (!of->of->n_operators)
		return "no framework's operators were recorded";
	return whole_ns ? NULL : "there is no whole step after the first";
}

/* One call for all of them takes about what one takes now. */
static void judge_loop(struct suspect *suspect, struct search *search)
{
	const struct looped_call *loop = torsh_looped_calls_longest(&search->loops);

	if (!loop)
		return;
	suspect->n = loop->n_all;
	suspect->ns = loop->ns;
	suspect->gain_ns = loop->ns - loop->ns / LOOP_CALLS_MIN;
	suspect->operator_name = torsh_timeline_label(suspect->process, loop->name);
	suspect->operators[0] = suspect->operator_name;
	suspect->n_operators = 1;
	suspect->stack = loop->stack;
}

static void judge(struct suspect *suspect, struct search *search, uint64_t whole_ns)
{
	double limit = torsh_suspects[suspect->kind].limit_pct;

	switch (suspect->kind) {
	case SUSPECT_SAME_COPIES:
		suspect->gain_ns = suspect->ns;
		break;
	case SUSPECT_LOOPED_CALLS:
		judge_loop(suspect, search);
		break;
	case SUSPECT_UNUSED_GRAPH:
		suspect->n = search->n_nodes;
		suspect->gain_pct = NAN;
		suspect->is_found =
			!search->n_run && search->n_nodes >= NODES_A_STEP * suspect->n_steps;
		return;
	case N_SUSPECTS:
		return;
	}
	if (!search->has_inputs) {
		suspect->reason = "the inputs of operators were not recorded "
				  "(TORSH_PROFILER_RECORD_SHAPES)";
		return;
	}
	suspect->gain_pct = torsh_percent((double)suspect->gain_ns, (double)whole_ns);
	suspect->is_found = torsh_percent((double)suspect->ns, (double)whole_ns) >= limit &&
			    suspect->gain_pct > 0;
}

void torsh_suspects_find(struct suspects *suspects, const struct recording *recording,
			 const struct metrics_process *of, const struct prepass *prepass)
{
	const struct span_visitor visitor = {.begin = see_begin, .end = see_end};
	struct search *search = torsh_need(calloc(1, sizeof(*search)));
	const struct time_scope *scope = &of->scope;
	uint64_t whole_ns = scope->is_of_steps ? scope->steady_ns : scope->ns;
	const char *reason = why_not(of, whole_ns);
	struct recorded_process *process = (struct recorded_process *)of->process;
	int rc = 0;

	*suspects = (struct suspects){0};
	*search = (struct search){.suspects = suspects,
				  .scope = scope,
				  .first = scope->is_of_steps ? scope->first_steady : 0,
				  .end = scope->is_of_steps ? scope->n_whole : scope->n};
	if (!reason)
		rc = torsh_spans_visit(recording, &process, 1, prepass->unnested, NULL, &visitor,
				       search, NULL);
	if (rc)
		torsh_die("%s can't be read", recording->path);
	for (enum suspect_kind kind = 0; kind < N_SUSPECTS; kind++) {
		struct suspect *suspect = &suspects->items[kind];

		suspect->kind = kind;
		suspect->reason = reason;
		suspect->process = of->process;
		suspect->n_steps = search->end - search->first;
		suspect->share_of =
			scope->is_of_steps ? "the whole steps after the first" : "the run";
		if (!reason)
			judge(suspect, search, whole_ns);
	}
	torsh_looped_calls_free(&search->loops);
	free(search);
}

/* ---- in words -------------------------------------------------------------------------------- */

static const char *a_step(const struct suspect *suspect, uint64_t n, const char *noun,
			  char text[SIZE_TEXT_BYTES])
{
	uint64_t steps = suspect->n_steps ? suspect->n_steps : 1;

	return torsh_size_counted((n + steps / 2) / steps, noun, text);
}

char *torsh_suspect_sentence(const struct suspect *suspect)
{
	char ns[SIZE_TEXT_BYTES], n[SIZE_TEXT_BYTES];
	const char *each = suspect->n_steps > 1 ? " a step" : "";

	torsh_size_duration(suspect->ns, ns);
	switch (suspect->kind) {
	case SUSPECT_SAME_COPIES:
		return torsh_need_text(
			"Tensors are copied without a change of type, to be kept: %s in %s%s.", ns,
			a_step(suspect, suspect->n, "copy", n), each);
	case SUSPECT_LOOPED_CALLS:
		return torsh_need_text(
			"A loop calls %s on small tensors, %s%s in %s, with what else is in it.",
			suspect->operator_name, a_step(suspect, suspect->n, "time", n), each, ns);
	case SUSPECT_UNUSED_GRAPH:
		return torsh_need_text(
			"Operators make a graph for a backward pass, %s%s, and keep their inputs "
			"for it, but there is no backward pass.",
			a_step(suspect, suspect->n, "node", n), each);
	case N_SUSPECTS:
		break;
	}
	return NULL;
}

char *torsh_suspect_line(const struct suspect *suspect, struct symbols *symbols)
{
	const struct finding finding = {
		.process = suspect->process,
		.stack = suspect->stack,
		.is_stack_of_program = true,
	};

	return torsh_finding_line(&finding, symbols);
}
