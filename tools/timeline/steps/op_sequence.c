/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/steps/op_sequence.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"

/* Operators that make or fill a tensor. */
static bool is_making(const char *name)
{
	static const char *const makers[] = {"empty", "empty_strided", "uniform_", "normal_",
					     "fill_", "zero_",	       "zeros",	   "ones",
					     "full",  "randn",	       "rand",	   "randint"};
	size_t i = 0, n = sizeof(makers) / sizeof(*makers);

	if (strncmp(name, "aten::", 6) != 0)
		return false;
	while (i < n && strcmp(name + 6, makers[i]) != 0)
		i++;
	return i < n;
}

/* A scope of the program's own is around operators, and none itself. */
static bool is_outermost(const struct span *span)
{
	const struct span *outer = torsh_span_outer_operator(span);

	if (outer && outer->scope != OP_USER)
		return false;
	if (span->kind == SPAN_OPERATOR)
		return span->scope != OP_USER && !is_making(torsh_span_name(span));
	return span->is_module && !torsh_span_outer_module(span);
}

static struct op_sequence *find_sequence(struct op_sequences *sequences, uint32_t thread)
{
	for (size_t i = 0; i < sequences->n; i++) {
		if (sequences->items[i].thread == thread)
			return &sequences->items[i];
	}
	return NULL;
}

static struct op_sequence *need_sequence(struct op_sequences *sequences, uint32_t thread)
{
	struct op_sequence *sequence = find_sequence(sequences, thread);

	if (sequence || sequences->n == SEQUENCE_THREADS)
		return sequence;
	sequence = &sequences->items[sequences->n++];
	sequence->thread = thread;
	torsh_sparse_array_create(&sequence->places, sizeof(struct op_place));
	return sequence;
}

static uint64_t pause_before(const struct op_sequence *sequence, uint64_t at_ns)
{
	return sequence->last_end_ns && at_ns > sequence->last_end_ns
		       ? at_ns - sequence->last_end_ns
		       : 0;
}

void torsh_op_sequences_begin(struct op_sequences *sequences, const struct span *span)
{
	struct op_sequence *sequence;
	struct op_place *place;
	struct open_place open = {.ordinal = span->ordinal, .is_open = true};

	if (!is_outermost(span))
		return;
	sequence = need_sequence(sequences, span->thread);
	if (!sequence)
		return;
	open.at = sequence->n++;
	place = torsh_sparse_array_at(&sequence->places, open.at % SEQUENCE_MAX);
	*place = (struct op_place){.start_ns = span->start_ns,
				   .end_ns = span->start_ns,
				   .pause_ns = pause_before(sequence, span->start_ns),
				   .symbol = span->name << 1 | span->is_module,
				   .inputs = span->inputs};
	sequence->n_modules += span->is_module;
	*(span->is_module ? &sequence->module : &sequence->op) = open;
}

void torsh_op_sequences_end(struct op_sequences *sequences, const struct span *span)
{
	struct op_sequence *sequence = find_sequence(sequences, span->thread);
	struct open_place *open;
	struct op_place *place;

	if (!sequence)
		return;
	if (span->kind == SPAN_OPERATOR && span->scope != OP_USER)
		sequence->last_end_ns = span->end_ns;
	open = span->is_module ? &sequence->module : &sequence->op;
	if (!open->is_open || open->ordinal != span->ordinal)
		return;
	open->is_open = false;
	if (sequence->n - open->at > SEQUENCE_MAX)
		return;
	place = torsh_sparse_array_at(&sequence->places, open->at % SEQUENCE_MAX);
	place->end_ns = span->end_ns;
}

static const struct op_sequence *choose(const struct op_sequences *sequences)
{
	const struct op_sequence *best = NULL;

	for (size_t i = 0; i < sequences->n; i++) {
		const struct op_sequence *other = &sequences->items[i];

		if (!best || other->n_modules > best->n_modules ||
		    (other->n_modules == best->n_modules && other->n > best->n))
			best = other;
	}
	return best;
}

struct op_place *torsh_op_sequence_take(const struct op_sequence *sequence, size_t *n)
{
	uint64_t first = sequence->n > SEQUENCE_MAX ? sequence->n - SEQUENCE_MAX : 0;
	struct op_place *places =
		torsh_need_items(NULL, 0, (size_t)(sequence->n - first), sizeof(*places));

	*n = 0;
	for (uint64_t i = first; i < sequence->n; i++)
		places[(*n)++] = *(const struct op_place *)torsh_sparse_array_find(
			&sequence->places, i % SEQUENCE_MAX);
	return places;
}

struct op_place *torsh_op_sequences_take(const struct op_sequences *sequences, size_t *n)
{
	const struct op_sequence *sequence = choose(sequences);

	*n = 0;
	return sequence ? torsh_op_sequence_take(sequence, n) : NULL;
}

void torsh_op_sequences_free(struct op_sequences *sequences)
{
	for (size_t i = 0; i < sequences->n; i++)
		torsh_sparse_array_destroy(&sequences->items[i].places);
	sequences->n = 0;
}
