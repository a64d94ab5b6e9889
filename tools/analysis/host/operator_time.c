/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/analysis/host/operator_time.h"

#include <stdlib.h>
#include <string.h>

#include "agent/wire/event.h"
#include "tools/base/die.h"
#include "tools/timeline/inputs.h"

static bool covers(const struct span *span)
{
	return span->kind == SPAN_OPERATOR && (span->scope != OP_USER || span->traits & NAME_DATA);
}

/* The program's own scopes, such as an optimizer's step, include time in Python. */
static bool is_covered(const struct span *span)
{
	const struct span *outer = torsh_span_outer_operator(span);

	while (outer && !covers(outer))
		outer = torsh_span_outer_operator(outer);
	return outer;
}

static bool has_equal_types(const struct input *a, const struct input *b)
{
	return a->n_type == b->n_type && memcmp(a->text, b->text, a->n_type) == 0;
}

/* All conversions end in aten::copy_(self, source, non_blocking). */
static bool is_conversion(struct operator_time *time, const struct span *span)
{
	const char *text = torsh_timeline_label(span->process, span->inputs);
	struct inputs *inputs = torsh_need(malloc(sizeof(*inputs)));
	bool is_one = false;

	time->has_copies = true;
	torsh_inputs_parse(inputs, text);
	if (inputs->n >= 2) {
		const struct input *to = &inputs->items[inputs->at[0]];
		const struct input *from = &inputs->items[inputs->at[1]];

		if (to->kind == INPUT_TENSOR && from->kind == INPUT_TENSOR) {
			time->has_inputs = true;
			is_one = !has_equal_types(to, from);
		}
	}
	free(inputs);
	return is_one;
}

static void add_conversion(struct operator_time *time, const struct span *span)
{
	uint64_t ns = span->end_ns - span->start_ns;

	time->n_conversions++;
	time->conversions_ns += ns;
	if (ns < time->longest_conversion_ns)
		return;
	time->longest_conversion_ns = ns;
	time->conversion_at_ns = span->start_ns;
	time->conversion_stack = span->stack;
}

static void add_leaf(struct operator_time *time, const struct span *span)
{
	uint64_t ns = span->end_ns - span->start_ns;
	bool is_short = ns < SHORT_OPERATOR_NS;

	time->n_leaves++;
	time->leaves_ns += ns;
	time->n_short += is_short;
	time->short_ns += is_short ? ns : 0;
	if (is_short && ns > time->longest_short_ns) {
		time->longest_short_ns = ns;
		time->longest_short_at_ns = span->start_ns;
	}
}

void torsh_operator_time_add(struct operator_time *time, const struct time_scope *scope,
			     const struct span *span)
{
	size_t interval;

	if (!covers(span) || span->is_cut)
		return;
	if (!is_covered(span))
		torsh_busy_add(&time->covered, span->start_ns, span->end_ns);
	interval = torsh_scope_at(scope, span->start_ns);
	if (interval == STEP_NONE || interval < scope->first_steady || interval >= scope->n_whole)
		return;
	if (!span->n_inner && span->scope != OP_USER)
		add_leaf(time, span);
	if (strcmp(torsh_span_name(span), "aten::copy_") == 0 && is_conversion(time, span))
		add_conversion(time, span);
}

static void add_gap(struct operator_time *time, const struct step *step, uint64_t from_ns,
		    uint64_t to_ns)
{
	uint64_t ns = to_ns > from_ns ? to_ns - from_ns : 0;

	if (ns && ns < LONG_GAP_NS) {
		time->n_short_gaps++;
		time->short_gaps_ns += ns;
		if (ns > time->longest_short_gap_ns) {
			time->longest_short_gap_ns = ns;
			time->longest_short_gap_at_ns = from_ns;
		}
	} else if (ns) {
		time->n_long_gaps++;
		time->long_gaps_ns += ns;
	}
	if (ns <= time->longest_gap_ns)
		return;
	time->longest_gap_ns = ns;
	time->longest_gap_at_ns = from_ns;
	time->longest_gap_step = step->number;
}

void torsh_operator_time_settle(struct operator_time *time, const struct time_scope *scope)
{
	const struct busy *covered = &time->covered;
	size_t next = 0;

	torsh_busy_settle(&time->covered);
	for (size_t i = scope->first_steady; i < scope->n_whole; i++) {
		const struct step *step = &scope->intervals[i];
		uint64_t at_ns = step->start_ns;

		while (next < covered->n && covered->intervals[next].end_ns <= step->start_ns)
			next++;
		for (size_t k = next;
		     k < covered->n && covered->intervals[k].begin_ns < step->end_ns; k++) {
			add_gap(time, step, at_ns, covered->intervals[k].begin_ns);
			at_ns = covered->intervals[k].end_ns;
		}
		add_gap(time, step, at_ns, step->end_ns);
	}
}

void torsh_operator_time_free(struct operator_time *time)
{
	torsh_busy_free(&time->covered);
}
