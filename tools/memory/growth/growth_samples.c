/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/memory/growth/growth_samples.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/sparse_array.h"

/* A new high in each of three quarters takes as many changes. */
#define CHANGES_MIN 3u

/* ---- the moments ----------------------------------------------------------------------------- */

/* What lies at the end of a step or a window is in it. */
static bool is_in_window(const struct growth_scope *scope, uint64_t at_ns)
{
	return !scope->window || torsh_window_has(scope->window, at_ns ? at_ns - 1 : 0);
}

/* Returns the number of the first moment that is at an end of a step by the latest rule. */
static size_t first_by_rule(const struct recorded_process *process)
{
	uint64_t before = UINT64_MAX;
	size_t first = 0;

	for (size_t i = process->n_moments; i--;) {
		const struct recorded_moment *moment = &process->moments[i];

		if (moment->kind != RECORDED_MOMENT_BY_STEP)
			continue;
		if (moment->n_steps >= before)
			return first;
		if (moment->n_steps)
			before = moment->n_steps;
		first = i;
	}
	return first;
}

/* Set *x to the steps or seconds until a moment; false: it is no sample. */
static bool find_x(const struct recorded_moment *moment, const struct growth_scope *scope,
		   double *x)
{
	const struct steps *steps = scope->steps;

	if (!is_in_window(scope, moment->at_ns))
		return false;
	if (!scope->is_of_time && !steps) {
		*x = moment->n_steps ? (double)moment->n_steps : (double)moment->name;
		return moment->kind == RECORDED_MOMENT_BY_STEP;
	}
	if (moment->kind != RECORDED_MOMENT_BY_TIME)
		return false;
	*x = scope->is_of_time ? (double)moment->at_ns / 1e9
			       : (double)torsh_steps_after(steps->items, steps->n, moment->at_ns);
	return scope->is_of_time || (steps->n && moment->at_ns >= steps->items[0].start_ns &&
				     moment->at_ns < steps->items[steps->n - 1].end_ns);
}

struct candidate {
	double x;
	size_t moment;
};

/* Returns the moments that could be samples, n of them; their x rises. */
static struct candidate *find_candidates(const struct recorded_process *process,
					 const struct growth_scope *scope, size_t *n)
{
	bool is_by_writer = !scope->is_of_time && !scope->steps;
	struct candidate *candidates = NULL, next;
	size_t n_room = 0;

	*n = 0;
	for (size_t i = is_by_writer ? first_by_rule(process) : 0; i < process->n_moments; i++) {
		next.moment = i;
		if (!find_x(&process->moments[i], scope, &next.x) ||
		    (*n && next.x <= candidates[*n - 1].x))
			continue;
		candidates = torsh_array_reserve(candidates, *n, &n_room, sizeof(*candidates));
		candidates[(*n)++] = next;
	}
	return candidates;
}

/*
 * Early moments lie close where the writer could not remove them from the file any more: one of
 * each equal part is a sample.
 */
void torsh_growth_samples_choose(struct growth_samples *samples,
				 const struct recorded_process *process,
				 const struct growth_scope *scope)
{
	size_t n, part = SIZE_MAX;
	struct candidate *candidates = find_candidates(process, scope, &n);

	samples->n = 0;
	for (size_t i = 0; i < n; i++) {
		double length = candidates[n - 1].x - candidates[0].x;
		double of_all = length > 0 ? (candidates[i].x - candidates[0].x) / length : 0;
		size_t its_part = (size_t)(of_all * (GROWTH_SAMPLES_MAX - 1) + 0.5);

		if (its_part == part)
			samples->n--;
		part = its_part;
		samples->x[samples->n] = candidates[i].x;
		samples->moments[samples->n++] = candidates[i].moment;
	}
	free(candidates);
}

/* ---- the stacks ------------------------------------------------------------------------------ */

/* From a sample on, a stack has this. */
struct change {
	uint32_t stack;
	uint32_t order; /* of all changes */
	uint32_t sample;
	uint64_t blocks, bytes;
};

struct changes {
	struct change *items;
	size_t n, n_room;
	struct sparse_array n_of; /* uint32_t: how many a stack has */
};

/* Call take for the changes up to the last sample, in the order of time. */
static void each_change(const struct growth_samples *samples,
			const struct recorded_process *process, struct changes *changes,
			void (*take)(struct changes *changes, const struct change *change))
{
	uint32_t sample = 0;

	for (size_t i = 0; i <= samples->moments[samples->n - 1]; i++) {
		struct usage_at usage = {0};

		sample += i > samples->moments[sample];
		while (torsh_usage_list_next(&process->moments[i].usages, &usage))
			take(changes, &(struct change){.stack = usage.number,
						       .sample = sample,
						       .blocks = usage.blocks,
						       .bytes = usage.bytes});
	}
}

static void count(struct changes *changes, const struct change *change)
{
	++*(uint32_t *)torsh_sparse_array_at(&changes->n_of, change->stack);
}

static void keep(struct changes *changes, const struct change *change)
{
	const uint32_t *n_of = torsh_sparse_array_find(&changes->n_of, change->stack);

	if (!n_of || *n_of < CHANGES_MIN)
		return;
	changes->items = torsh_array_reserve(changes->items, changes->n, &changes->n_room,
					     sizeof(*changes->items));
	changes->items[changes->n] = *change;
	changes->items[changes->n].order = (uint32_t)changes->n;
	changes->n++;
}

static int compare_changes(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

/* Fill in the series of the stack whose changes begin at first. Returns the end of these. */
static size_t fill(struct growth_series *series, size_t n_samples, const struct changes *changes,
		   size_t first)
{
	uint64_t blocks = 0, bytes = 0;
	size_t at = first;

	series->stack = changes->items[first].stack;
	for (size_t i = 0; i < n_samples; i++) {
		for (; at < changes->n && changes->items[at].stack == series->stack &&
		       changes->items[at].sample <= i;
		     at++) {
			blocks = changes->items[at].blocks;
			bytes = changes->items[at].bytes;
		}
		series->blocks[i] = (double)blocks;
		series->bytes[i] = (double)bytes;
	}
	return at;
}

void torsh_growth_samples_each(const struct growth_samples *samples,
			       const struct recorded_process *process,
			       void (*each)(const struct growth_series *series, void *context),
			       void *context)
{
	struct changes changes = {0};
	struct growth_series series;

	if (!samples->n)
		return;
	torsh_sparse_array_create(&changes.n_of, sizeof(uint32_t));
	each_change(samples, process, &changes, count);
	each_change(samples, process, &changes, keep);
	if (changes.n)
		qsort(changes.items, changes.n, sizeof(*changes.items), compare_changes);
	for (size_t i = 0; i < changes.n;) {
		i = fill(&series, samples->n, &changes, i);
		each(&series, context);
	}
	torsh_sparse_array_destroy(&changes.n_of);
	free(changes.items);
}
