/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/profile/step_totals.h. */
#include "tools/profile/step_totals.h"

#include <stdlib.h>
#include <string.h>

#include "tools/die.h"

struct adder {
	const struct steps *steps;
	struct step_total *totals;
	struct flops_book *book;
	struct phase_clock clock;
	size_t n_entered; /* steps that have begun by the last tensor */
	int64_t held_bytes;
};

static void see_begin(void *context, struct call *call)
{
	struct adder *adder = context;

	torsh_phase_clock_begin(&adder->clock, call);
	if (call->kind == CALL_OPERATOR)
		torsh_flops_book_begin(adder->book, call);
}

static void see_end(void *context, struct call *call)
{
	struct adder *adder = context;
	size_t step = torsh_steps_at(adder->steps, call->start_ns);
	struct flops own = {0};

	torsh_phase_clock_end(&adder->clock, call);
	if (call->kind == CALL_OPERATOR)
		own = torsh_flops_book_end(adder->book, call);
	if (step == STEP_NONE)
		return;
	adder->totals[step].calls += call->kind == CALL_OPERATOR;
	adder->totals[step].flops += own.counter;
	adder->totals[step].flops_all += own.all;
}

/* Each step begins with what is held then. */
static void enter_steps(struct adder *adder, uint64_t at_ns)
{
	for (; adder->n_entered < adder->steps->n && adder->steps->items[adder->n_entered].start_ns <= at_ns;
	     adder->n_entered++)
		adder->totals[adder->n_entered].peak_bytes = adder->held_bytes > 0 ? (uint64_t)adder->held_bytes : 0;
}

static void see_event(void *context, const struct profile_process *process, const struct timeline_event *event,
		      struct call *innermost)
{
	struct adder *adder = context;
	const struct event_tensor *tensor = &event->event.tensor;
	size_t step;

	(void)process;
	(void)innermost;
	if (event->event.id != EVENT_TENSOR)
		return;
	enter_steps(adder, event->at_ns);
	adder->held_bytes += tensor->is_free ? -(int64_t)tensor->bytes : (int64_t)tensor->bytes;
	step = torsh_steps_at(adder->steps, event->at_ns);
	if (step != STEP_NONE && adder->held_bytes > (int64_t)adder->totals[step].peak_bytes)
		adder->totals[step].peak_bytes = (uint64_t)adder->held_bytes;
}

struct step_total *torsh_step_totals(const struct profile *profile, struct profile_process *process,
				     const struct survey *survey)
{
	static const struct calls_visitor visitor = {.begin = see_begin, .end = see_end, .event = see_event};
	struct adder adder = {.steps = &torsh_survey_of(survey, process)->steps,
			      .book = torsh_flops_book_create(profile)};
	struct phase_step *spent = torsh_need_items(NULL, 0, adder.steps->n, sizeof(*spent));
	int rc;

	adder.totals = torsh_need_items(NULL, 0, adder.steps->n, sizeof(*adder.totals));
	torsh_phase_clock_start(&adder.clock, adder.steps, spent);
	rc = torsh_calls_walk(profile, &process, 1, survey->crossings, NULL, &visitor, &adder, NULL);
	if (rc < 0)
		torsh_die("can't read the timeline of %s: %s", profile->path, strerror(-rc));
	torsh_phase_clock_stop(&adder.clock);
	for (size_t i = 0; i < adder.steps->n; i++)
		adder.totals[i].spent = spent[i];
	free(spent);
	enter_steps(&adder, UINT64_MAX);
	torsh_flops_book_destroy(adder.book);
	return adder.totals;
}
