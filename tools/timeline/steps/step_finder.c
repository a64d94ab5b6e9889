/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/steps/step_finder.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/timeline/steps/step_moments.h"
#include "tools/timeline/steps/op_sequence.h"
#include "tools/timeline/steps/period_steps.h"
#include "tools/timeline/steps/request_steps.h"
#include "tools/timeline/steps/scheduled_steps.h"

struct step_finder {
	struct moments user, profiler, optimizer, data, backward;
	struct scheduled_steps scheduled;
	struct requests requests;
	struct schedule schedule;
	bool has_start, is_backward;
	uint64_t start_ns; /* start of the first operator, or the end of the setup if it is known */
	uint64_t last_operator_ns; /* end of the last operator */
	struct op_sequences sequences;
};

struct step_finder *torsh_step_finder_create(void)
{
	return torsh_need(calloc(1, sizeof(struct step_finder)));
}

void torsh_step_finder_destroy(struct step_finder *finder)
{
	free(finder->user.items);
	free(finder->profiler.items);
	free(finder->optimizer.items);
	free(finder->data.items);
	free(finder->backward.items);
	free(finder->scheduled.moments.items);
	free(finder->requests.items);
	torsh_op_sequences_free(&finder->sequences);
	free(finder);
}

static void see_phase(struct step_finder *finder, const struct span *span)
{
	bool is_backward = span->phase == PHASE_BACKWARD;

	if (is_backward && !finder->is_backward)
		torsh_moments_add(&finder->backward, (struct moment){.start_ns = span->start_ns});
	/* A concurrent span, such as a scope around the whole step, doesn't end a backward pass. */
	if (is_backward || span->scope == OP_FUNCTION)
		finder->is_backward = is_backward;
	if (span->traits & NAME_DATA)
		torsh_moments_add(&finder->data, (struct moment){.start_ns = span->start_ns});
	else if (finder->data.n && span->scope == OP_FUNCTION && span->phase != PHASE_DATA)
		finder->data.items[finder->data.n - 1].is_used = true;
}

void torsh_step_finder_begin(struct step_finder *finder, const struct span *span)
{
	torsh_op_sequences_begin(&finder->sequences, span);
	if (span->kind != SPAN_OPERATOR)
		return;
	if (!finder->has_start) {
		finder->has_start = true;
		finder->start_ns = span->start_ns;
	}
	see_phase(finder, span);
}

void torsh_step_finder_end(struct step_finder *finder, const struct span *span)
{
	struct moment moment = {
		.start_ns = span->start_ns, .end_ns = span->end_ns, .name = span->name};

	torsh_op_sequences_end(&finder->sequences, span);
	torsh_requests_end(&finder->requests, span);
	if (span->kind == SPAN_OPERATOR && span->end_ns > finder->last_operator_ns)
		finder->last_operator_ns = span->end_ns;
	if (span->traits & NAME_PROFILER_STEP) {
		moment.number = strtoull(strchr(torsh_span_name(span), '#') + 1, NULL, 10);
		torsh_moments_add(&finder->profiler, moment);
	}
	if (span->traits & NAME_OPTIMIZER_STEP)
		torsh_moments_add(&finder->optimizer, moment);
}

static void add_user(struct step_finder *finder, uint64_t at_ns, uint64_t number)
{
	struct moment moment = {.start_ns = at_ns,
				.number = number == UINT64_MAX ? finder->user.n : number};

	torsh_moments_add(&finder->user, moment);
}

void torsh_step_finder_event(struct step_finder *finder, const struct timeline_event *event)
{
	const struct event_schedule *schedule = &event->event.schedule;

	switch (event->event.id) {
	case EVENT_STEP:
		add_user(finder, event->at_ns, event->event.step.number);
		break;
	case EVENT_SCHEDULE:
		finder->schedule = (struct schedule){
			.skip = schedule->skip,
			.wait = schedule->wait,
			.warmup = schedule->warmup,
			.active = schedule->active,
			.repeat = schedule->repeat,
		};
		break;
	case EVENT_SCHEDULE_STEP:
		torsh_scheduled_steps_add(&finder->scheduled, event->at_ns,
					  &event->event.schedule_step);
		break;
	}
}

/* ---- the rules ------------------------------------------------------------------------------- */

/* A step lasts from each moment to the next; the last one ends with the last operator. */
static void step_between(struct steps *steps, const struct moments *moments, uint64_t last_ns)
{
	for (size_t i = 0; i < moments->n; i++)
		torsh_steps_add(steps, steps->n, moments->items[i].start_ns,
				i + 1 < moments->n ? moments->items[i + 1].start_ns : last_ns);
}

/* The program's marks have numbers, and nothing shows how long the last step goes on. */
static void step_by_marks(struct steps *steps, const struct moments *moments, uint64_t last_ns)
{
	for (size_t i = 0; i < moments->n; i++)
		torsh_steps_add(steps, moments->items[i].number, moments->items[i].start_ns,
				i + 1 < moments->n ? moments->items[i + 1].start_ns : last_ns);
}

static void step_by_profiler(struct steps *steps, const struct moments *moments)
{
	for (size_t i = 0; i < moments->n; i++)
		torsh_steps_add(steps, moments->items[i].number, moments->items[i].start_ns,
				moments->items[i].end_ns);
}

/*
 * A batch that no operator used is none: one more was requested of the DataLoader, which had none.
 * Where no operators use batches at all, each is one.
 */
static void step_by_batches(struct steps *steps, const struct moments *moments, uint64_t last_ns)
{
	bool is_any_used = false;

	for (size_t i = 0; i < moments->n; i++)
		is_any_used = is_any_used || moments->items[i].is_used;
	for (size_t i = 0; i < moments->n; i++) {
		if (moments->items[i].is_used || !is_any_used)
			torsh_steps_add(steps, steps->n, moments->items[i].start_ns,
					i + 1 < moments->n ? moments->items[i + 1].start_ns
							   : last_ns);
	}
}

/* Returns the optimizer that steps most often; of equal ones the first. */
static uint32_t choose_optimizer(const struct moments *moments)
{
	size_t n_most = 0;
	uint32_t chosen = 0;

	for (size_t i = 0; i < moments->n; i++) {
		size_t n = 0;

		if (moments->items[i].name == chosen)
			continue;
		for (size_t k = i; k < moments->n; k++)
			n += moments->items[k].name == moments->items[i].name;
		if (n > n_most) {
			n_most = n;
			chosen = moments->items[i].name;
		}
		/* The remaining moments can't change the choice. */
		if (n_most >= moments->n - i)
			break;
	}
	return chosen;
}

/* Of a flight recorder the first one is not whole, and its number is known. */
static void step_by_optimizer(const struct step_finder *finder,
			      const struct recorded_process *process, struct steps *steps)
{
	const struct moments *moments = &finder->optimizer;
	uint32_t optimizer = choose_optimizer(moments);
	uint64_t start_ns = finder->start_ns, first = process->timeline_passed_steps;
	bool is_whole = !process->timeline_passed;

	for (size_t i = 0; i < moments->n; i++) {
		if (moments->items[i].name != optimizer)
			continue;
		if (is_whole && moments->items[i].end_ns > start_ns)
			torsh_steps_add(steps, first + steps->n, start_ns,
					moments->items[i].end_ns);
		first += !is_whole;
		is_whole = true;
		start_ns = moments->items[i].end_ns;
	}
}

/* Make steps by the best rule that the process has something for. */
static void step_by_best(struct step_finder *finder, uint64_t last_ns,
			 const struct recorded_process *process, struct steps *steps)
{
	if (finder->user.n) {
		steps->rule = STEPS_BY_USER;
		step_by_marks(steps, &finder->user, last_ns);
	} else if (finder->requests.n) {
		steps->rule = STEPS_BY_REQUESTS;
		torsh_requests_make(&finder->requests, &finder->sequences, steps);
	} else if (finder->profiler.n) {
		steps->rule = STEPS_BY_PROFILER;
		step_by_profiler(steps, &finder->profiler);
	} else if (finder->optimizer.n) {
		steps->rule = STEPS_BY_OPTIMIZER;
		step_by_optimizer(finder, process, steps);
	} else if (finder->data.n > 1) {
		steps->rule = STEPS_BY_DATALOADER;
		step_by_batches(steps, &finder->data, finder->last_operator_ns);
	} else if (finder->backward.n > 1) {
		steps->rule = STEPS_BY_BACKWARD;
		step_between(steps, &finder->backward, finder->last_operator_ns);
	} else if (!process->is_data_worker) {
		/* What a worker of a DataLoader repeats are samples: parts of another's step. */
		torsh_period_steps_make(&finder->sequences, process, steps);
		steps->rule = steps->n ? STEPS_BY_PERIOD : STEPS_BY_NONE;
	}
}

/* The program's own marks are certain; repeats have decided on their own. */
static void set_certainty(const struct step_finder *finder, struct steps *steps)
{
	switch (steps->rule) {
	case STEPS_BY_OPTIMIZER:
	case STEPS_BY_DATALOADER:
	case STEPS_BY_BACKWARD:
		steps->certainty = torsh_period_steps_regularity(&finder->sequences, steps);
		break;
	case STEPS_BY_USER:
	case STEPS_BY_REQUESTS:
	case STEPS_BY_PROFILER:
		steps->certainty = 1;
		break;
	default:
		break;
	}
}

void torsh_step_finder_decide(struct step_finder *finder, uint64_t last_ns,
			      const struct recorded_process *process, struct steps *steps)
{
	*steps = (struct steps){.schedule = finder->schedule};
	if (process->setup_end_ns) {
		finder->has_start = true;
		finder->start_ns = process->setup_end_ns;
	}
	if (finder->schedule.active && finder->scheduled.moments.n) {
		torsh_scheduled_steps_make(&finder->scheduled,
					   finder->has_start ? finder->start_ns : 0, last_ns,
					   &finder->profiler, steps);
	} else {
		step_by_best(finder, last_ns, process, steps);
		steps->n_all = steps->n;
	}
	set_certainty(finder, steps);
}
