/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/analysis/time_scope.h"

#include <stdlib.h>

#include "tools/base/die.h"

/* Requests may overlap: the time of the first one counts. */
static void add_span(struct time_scope *scope, struct step interval, uint64_t from_ns,
		     uint64_t to_ns)
{
	if (scope->n && from_ns < scope->intervals[scope->n - 1].end_ns)
		from_ns = scope->intervals[scope->n - 1].end_ns;
	interval.start_ns = interval.start_ns > from_ns ? interval.start_ns : from_ns;
	interval.end_ns = interval.end_ns < to_ns ? interval.end_ns : to_ns;
	if (interval.start_ns >= interval.end_ns)
		return;
	scope->intervals[scope->n++] = interval;
	scope->ns += interval.end_ns - interval.start_ns;
}

void torsh_scope_create(struct time_scope *scope, const struct prepass_process *of,
			uint64_t from_ns, uint64_t to_ns)
{
	const struct steps *steps = &of->steps;
	/* A schedule's warm-up is not among its steps. */
	size_t n_warmup = steps->is_restricted ? 0 : 1;

	*scope = (struct time_scope){.is_of_steps = steps->n};
	scope->intervals = torsh_need_items(NULL, 0, steps->n + 1, sizeof(*scope->intervals));
	for (size_t i = 0; i < steps->n; i++) {
		if (i == n_warmup)
			scope->first_steady = scope->n;
		add_span(scope, steps->items[i], from_ns, to_ns);
	}
	if (!steps->n && of->has_events)
		add_span(scope, (struct step){.start_ns = of->first_ns, .end_ns = of->last_ns + 1},
			 from_ns, to_ns);
	if (steps->n <= n_warmup)
		scope->first_steady = scope->n;
	scope->is_open = scope->is_of_steps && scope->n &&
			 scope->intervals[scope->n - 1].end_ns >= of->last_ns;
	scope->n_whole = scope->n - (scope->is_open && scope->n > 1);
	if (scope->first_steady > scope->n_whole)
		scope->first_steady = scope->n_whole;
	for (size_t i = scope->first_steady; i < scope->n_whole; i++)
		scope->steady_ns += scope->intervals[i].end_ns - scope->intervals[i].start_ns;
}

void torsh_scope_trim(struct time_scope *scope, uint64_t last_work_ns)
{
	struct step *last = scope->n ? &scope->intervals[scope->n - 1] : NULL;

	if (!last || !scope->is_open || last_work_ns <= last->start_ns ||
	    last_work_ns >= last->end_ns)
		return;
	scope->ns -= last->end_ns - last_work_ns;
	if (scope->first_steady < scope->n_whole && scope->n_whole == scope->n)
		scope->steady_ns -= last->end_ns - last_work_ns;
	last->end_ns = last_work_ns;
}

void torsh_scope_destroy(struct time_scope *scope)
{
	free(scope->intervals);
	*scope = (struct time_scope){0};
}

size_t torsh_scope_at(const struct time_scope *scope, uint64_t at_ns)
{
	return torsh_steps_find(scope->intervals, scope->n, at_ns);
}

uint64_t torsh_scope_within(const struct time_scope *scope, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t ns = 0;

	for (size_t i = torsh_steps_after(scope->intervals, scope->n, from_ns);
	     i < scope->n && scope->intervals[i].start_ns < to_ns; i++) {
		uint64_t start_ns = scope->intervals[i].start_ns > from_ns
					    ? scope->intervals[i].start_ns
					    : from_ns;
		uint64_t end_ns =
			scope->intervals[i].end_ns < to_ns ? scope->intervals[i].end_ns : to_ns;

		ns += end_ns > start_ns ? end_ns - start_ns : 0;
	}
	return ns;
}
