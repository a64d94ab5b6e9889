/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/steps.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"
#include "tools/base/containers/sparse_array.h"
#include "tools/base/die.h"
#include "tools/timeline/window.h"

#define SEQUENCE_MAX 65536u /* the last outermost operators of a thread that are stored */
#define SEQUENCE_THREADS 16u
#define PERIODS_MIN 3u /* repetitions that make a sequence periodic rather than a coincidence */
#define DIFFERENT_PERCENT 5u /* percentage of a period's operators that may differ */

const char *const torsh_step_rule_names[N_STEP_RULES] = {
#define RULE(NAME, name, text) #name,
	STEP_RULES
#undef RULE
};

const char *const torsh_step_rule_texts[N_STEP_RULES] = {
#define RULE(NAME, name, text) text,
	STEP_RULES
#undef RULE
};

/* A moment that may bound steps, or the time of a span. */
struct moment {
	uint64_t start_ns, end_ns, number;
	uint64_t step; /* number given by the schedule */
	uint32_t name;
};

struct moments {
	struct moment *items;
	size_t n, n_room;
};

struct place {
	uint64_t at_ns;
	uint32_t name;
};

/* The last outermost operators of a thread, as a ring. */
struct sequence {
	uint32_t thread;
	struct sparse_array places; /* of struct place */
	uint64_t n; /* number of operators so far */
};

struct step_finder {
	struct moments user, profiler, optimizer, data, backward;
	struct moments scheduled; /* steps that the schedule counted */
	uint32_t told_by; /* enum step_source of the scheduled steps */
	struct schedule schedule;
	bool has_start, is_backward;
	uint64_t start_ns; /* start of the first operator, or the end of the setup if it is known */
	struct sequence sequences[SEQUENCE_THREADS];
	size_t n_sequences;
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
	free(finder->scheduled.items);
	for (size_t i = 0; i < finder->n_sequences; i++)
		torsh_sparse_array_destroy(&finder->sequences[i].places);
	free(finder);
}

static void add_moment(struct moments *moments, struct moment moment)
{
	moments->items =
		torsh_array_reserve(moments->items, moments->n, &moments->n_room, sizeof(moment));
	moments->items[moments->n++] = moment;
}

static void add_place(struct step_finder *finder, const struct span *span)
{
	struct sequence *sequence = finder->sequences, *end = sequence + finder->n_sequences;
	struct place *place;

	while (sequence < end && sequence->thread != span->thread)
		sequence++;
	if (sequence == end) {
		if (finder->n_sequences == SEQUENCE_THREADS)
			return;
		finder->n_sequences++;
		sequence->thread = span->thread;
		torsh_sparse_array_create(&sequence->places, sizeof(*place));
	}
	place = torsh_sparse_array_at(&sequence->places, sequence->n++ % SEQUENCE_MAX);
	*place = (struct place){.at_ns = span->start_ns, .name = span->name};
}

void torsh_step_finder_begin(struct step_finder *finder, const struct span *span)
{
	bool is_backward = span->phase == PHASE_BACKWARD;

	if (span->kind != SPAN_OPERATOR)
		return;
	if (!finder->has_start) {
		finder->has_start = true;
		finder->start_ns = span->start_ns;
	}
	if (span->traits & NAME_DATA)
		add_moment(&finder->data, (struct moment){.start_ns = span->start_ns});
	if (is_backward && !finder->is_backward)
		add_moment(&finder->backward, (struct moment){.start_ns = span->start_ns});
	/* A concurrent span, such as a scope around the whole step, doesn't end a backward pass. */
	if (is_backward || span->scope == OP_FUNCTION)
		finder->is_backward = is_backward;
	if (span->scope != OP_USER &&
	    (!torsh_span_outer_operator(span) || torsh_span_outer_operator(span)->scope == OP_USER))
		add_place(finder, span);
}

void torsh_step_finder_end(struct step_finder *finder, const struct span *span)
{
	struct moment moment = {
		.start_ns = span->start_ns, .end_ns = span->end_ns, .name = span->name};

	if (span->traits & NAME_PROFILER_STEP) {
		moment.number = strtoull(strchr(torsh_span_name(span), '#') + 1, NULL, 10);
		add_moment(&finder->profiler, moment);
	}
	if (span->traits & NAME_OPTIMIZER_STEP)
		add_moment(&finder->optimizer, moment);
}

static void add_user(struct step_finder *finder, uint64_t at_ns, uint64_t number)
{
	struct moment moment = {.start_ns = at_ns,
				.number = number == UINT64_MAX ? finder->user.n : number};

	add_moment(&finder->user, moment);
}

/* A better source of steps starts over, as in agent/producer/schedule.c. */
static void add_scheduled(struct step_finder *finder, uint64_t at_ns,
			  const struct event_schedule_step *step)
{
	struct moment moment = {.start_ns = at_ns, .number = step->number, .step = step->step};

	if (step->told_by < finder->told_by)
		return;
	if (step->told_by > finder->told_by)
		finder->scheduled.n = 0;
	finder->told_by = step->told_by;
	add_moment(&finder->scheduled, moment);
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
		add_scheduled(finder, event->at_ns, &event->event.schedule_step);
		break;
	}
}

static void add_step(struct steps *steps, uint64_t number, uint64_t start_ns, uint64_t end_ns)
{
	struct step step = {.number = number, .start_ns = start_ns, .end_ns = end_ns};

	/* Spans of several threads may overlap: the first counts. */
	if (steps->n && start_ns < steps->items[steps->n - 1].end_ns)
		step.start_ns = steps->items[steps->n - 1].end_ns;
	if (step.end_ns < step.start_ns)
		return;
	steps->items = torsh_array_reserve(steps->items, steps->n, &steps->n_room, sizeof(step));
	steps->items[steps->n++] = step;
}

/* A step lasts from each moment to the next. */
static void step_between(struct steps *steps, const struct moments *moments, bool has_numbers,
			 uint64_t last_ns)
{
	for (size_t i = 0; i < moments->n; i++) {
		uint64_t end_ns = i + 1 < moments->n ? moments->items[i + 1].start_ns : last_ns;

		add_step(steps, has_numbers ? moments->items[i].number : i,
			 moments->items[i].start_ns, end_ns);
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

static void step_by_optimizer(const struct step_finder *finder, struct steps *steps)
{
	const struct moments *moments = &finder->optimizer;
	uint32_t optimizer = choose_optimizer(moments);
	uint64_t start_ns = finder->start_ns;

	for (size_t i = 0; i < moments->n; i++) {
		if (moments->items[i].name != optimizer)
			continue;
		if (moments->items[i].end_ns > start_ns)
			add_step(steps, steps->n, start_ns, moments->items[i].end_ns);
		start_ns = moments->items[i].end_ns;
	}
}

/* ---- steps that a schedule counted ----------------------------------------------------------- */

static void add_scheduled_step(struct steps *steps, const struct moment *moment, uint64_t end_ns)
{
	steps->n_all++;
	if (torsh_schedule_action(&steps->schedule, moment->step) == SCHEDULE_ACTIVE)
		add_step(steps, moment->number, moment->start_ns, end_ns);
}

/* The last step ends with the profiler's scope, if that was recorded. */
static uint64_t end_of_profiler(const struct step_finder *finder, uint64_t number, uint64_t last_ns)
{
	const struct moments *moments = &finder->profiler;
	const struct moment *last = moments->n ? &moments->items[moments->n - 1] : NULL;

	return last && last->number == number ? last->end_ns : last_ns;
}

/*
 * Work before an optimizer's first call is a step, too; work after its last call is not. Marks of
 * other sources begin steps.
 */
static void step_by_schedule(const struct step_finder *finder, uint64_t last_ns,
			     struct steps *steps)
{
	static const enum step_rule rules[] = {
		[STEP_BY_NOBODY] = STEPS_BY_NONE,
		[STEP_BY_OPTIMIZER] = STEPS_BY_OPTIMIZER,
		[STEP_BY_PROFILER] = STEPS_BY_PROFILER,
		[STEP_BY_MARK] = STEPS_BY_USER,
	};
	const struct moments *moments = &finder->scheduled;
	bool is_optimizer = finder->told_by == STEP_BY_OPTIMIZER;
	size_t n = moments->n - is_optimizer;

	steps->rule = finder->told_by <= STEP_BY_MARK ? rules[finder->told_by] : STEPS_BY_NONE;
	steps->is_scheduled = steps->is_restricted = true;
	if (is_optimizer && finder->has_start) {
		struct moment first = {.start_ns = finder->start_ns};

		if (first.start_ns < moments->items[0].start_ns)
			add_scheduled_step(steps, &first, moments->items[0].start_ns);
	}
	for (size_t i = 0; i < n; i++) {
		const struct moment *moment = &moments->items[i];
		uint64_t end_ns = last_ns;

		if (i + 1 < moments->n)
			end_ns = moment[1].start_ns;
		else if (finder->told_by == STEP_BY_PROFILER)
			end_ns = end_of_profiler(finder, moment->number, last_ns);
		add_scheduled_step(steps, moment, end_ns);
	}
}

/* ---- a sequence that repeats itself ---------------------------------------------------------- */

/* Returns the places of a ring in the order of time; the caller frees them. */
static struct place *copy_places(const struct sequence *sequence, size_t *n)
{
	struct place *places;
	size_t first = sequence->n > SEQUENCE_MAX ? sequence->n % SEQUENCE_MAX : 0;

	*n = sequence->n > SEQUENCE_MAX ? SEQUENCE_MAX : sequence->n;
	places = torsh_need_items(NULL, 0, *n, sizeof(*places));
	for (size_t i = 0; i < *n; i++)
		places[i] = *(const struct place *)torsh_sparse_array_find(
			&sequence->places, (first + i) % SEQUENCE_MAX);
	return places;
}

/* Returns whether at most `n_most` of the first n places differ from those `period` later. */
static bool is_alike(const struct place *places, size_t n, size_t period, size_t n_most)
{
	size_t n_different = 0;

	for (size_t i = 0; i < n && n_different <= n_most; i++)
		n_different += places[i].name != places[i + period].name;
	return n_different <= n_most;
}

/* Returns the shortest period of the last half, or 0. The first half may be warm-up. */
static size_t find_period(const struct place *places, size_t n)
{
	places += n / 2;
	n -= n / 2;
	for (size_t period = 1; period * PERIODS_MIN <= n; period++) {
		if (is_alike(places, n - period, period, (n - period) * DIFFERENT_PERCENT / 100))
			return period;
	}
	return 0;
}

static void step_by_period(const struct step_finder *finder, uint64_t last_ns, struct steps *steps)
{
	const struct sequence *longest = finder->sequences;
	struct place *places;
	size_t n, period, first;

	for (size_t i = 1; i < finder->n_sequences; i++)
		longest = finder->sequences[i].n > longest->n ? &finder->sequences[i] : longest;
	if (!finder->n_sequences)
		return;
	places = copy_places(longest, &n);
	period = find_period(places, n);
	/* Extend backwards from the end while each place equals the one a period later. */
	first = period ? n - period : n;
	while (period && first >= period &&
	       is_alike(places + first - period, period, period, period * DIFFERENT_PERCENT / 100))
		first -= period;
	for (; period && first < n; first += period)
		add_step(steps, steps->n, places[first].at_ns,
			 first + period < n ? places[first + period].at_ns : last_ns);
	free(places);
}

void torsh_step_finder_decide(struct step_finder *finder, uint64_t last_ns, uint64_t setup_end_ns,
			      struct steps *steps)
{
	*steps = (struct steps){.schedule = finder->schedule};
	if (setup_end_ns) {
		finder->has_start = true;
		finder->start_ns = setup_end_ns;
	}
	if (finder->schedule.active && finder->scheduled.n) {
		step_by_schedule(finder, last_ns, steps);
		return;
	}
	if (finder->user.n) {
		steps->rule = STEPS_BY_USER;
		step_between(steps, &finder->user, true, last_ns);
	} else if (finder->profiler.n) {
		steps->rule = STEPS_BY_PROFILER;
		for (size_t i = 0; i < finder->profiler.n; i++)
			add_step(steps, finder->profiler.items[i].number,
				 finder->profiler.items[i].start_ns,
				 finder->profiler.items[i].end_ns);
	} else if (finder->optimizer.n) {
		steps->rule = STEPS_BY_OPTIMIZER;
		step_by_optimizer(finder, steps);
	} else if (finder->data.n > 1) {
		steps->rule = STEPS_BY_DATALOADER;
		step_between(steps, &finder->data, false, last_ns);
	} else if (finder->backward.n > 1) {
		steps->rule = STEPS_BY_BACKWARD;
		step_between(steps, &finder->backward, false, last_ns);
	} else {
		step_by_period(finder, last_ns, steps);
		steps->rule = steps->n ? STEPS_BY_PERIOD : STEPS_BY_NONE;
	}
	steps->n_all = steps->n;
}

void torsh_steps_choose(struct steps *steps, const struct steps_choice *choice)
{
	size_t n = 0, n_passed = 0;

	if (!choice->is_some)
		return;
	for (size_t i = 0; i < steps->n; i++) {
		const struct step *step = &steps->items[i];

		if (step->number < choice->first || step->number > choice->last ||
		    n_passed++ < choice->n_skipped)
			continue;
		steps->items[n++] = *step;
	}
	steps->n = n;
	steps->is_restricted = true;
}

size_t torsh_steps_after(const struct step *steps, size_t n, uint64_t at_ns)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (steps[middle].end_ns <= at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

size_t torsh_steps_find(const struct step *steps, size_t n, uint64_t at_ns)
{
	size_t i = torsh_steps_after(steps, n, at_ns);

	return i < n && steps[i].start_ns <= at_ns ? i : STEP_NONE;
}

size_t torsh_steps_at(const struct steps *steps, uint64_t at_ns)
{
	return torsh_steps_find(steps->items, steps->n, at_ns);
}

bool torsh_steps_have(const struct steps *steps, uint64_t at_ns)
{
	if (steps->window && !torsh_window_has(steps->window, at_ns))
		return false;
	return !steps->is_restricted || torsh_steps_at(steps, at_ns) != STEP_NONE;
}

void torsh_steps_restrict(struct steps *steps, const struct time_window *window)
{
	size_t n = 0;

	steps->window = window;
	for (size_t i = 0; i < steps->n; i++) {
		if (torsh_window_has(window, steps->items[i].start_ns))
			steps->items[n++] = steps->items[i];
	}
	steps->n = n;
}

void torsh_steps_free(struct steps *steps)
{
	free(steps->items);
}
