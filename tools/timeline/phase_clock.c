/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/phase_clock.h"

#include <stdlib.h>
#include <string.h>

#include "tools/base/containers/array.h"

void torsh_phase_clock_start(struct phase_clock *clock, const struct steps *steps,
			     struct phase_step *spent)
{
	*clock = (struct phase_clock){.steps = steps, .spent = spent};
}

/* A scope around a whole step has no phase. */
static bool is_of_a_phase(const struct span *span)
{
	if (span->is_async)
		return false;
	if (span->traits & (NAME_OPTIMIZER | NAME_DATA | NAME_BACKWARD))
		return true;
	return span->is_module || (span->kind == SPAN_OPERATOR && span->scope != OP_USER);
}

static void spend(struct phase_clock *clock, size_t step, uint64_t from_ns, uint64_t to_ns)
{
	size_t phase = clock->n_open ? clock->open[clock->n_open - 1].phase : N_PHASES;
	struct phase_step *spent = &clock->spent[step];

	*(phase < N_PHASES ? &spent->phase_ns[phase] : &spent->other_ns) += to_ns - from_ns;
	if (clock->watch.spend)
		clock->watch.spend(clock->watch.context, phase, from_ns, to_ns);
}

/* Add the time since the last change to the current step. */
static void go_on(struct phase_clock *clock, uint64_t now_ns)
{
	for (; clock->step < clock->steps->n; clock->step++) {
		const struct step *step = &clock->steps->items[clock->step];
		uint64_t from_ns = step->start_ns > clock->now_ns ? step->start_ns : clock->now_ns;
		uint64_t to_ns = step->end_ns < now_ns ? step->end_ns : now_ns;

		if (to_ns > from_ns)
			spend(clock, clock->step, from_ns, to_ns);
		if (step->end_ns > now_ns)
			break;
	}
	if (now_ns > clock->now_ns)
		clock->now_ns = now_ns;
}

void torsh_phase_clock_begin(struct phase_clock *clock, const struct span *span)
{
	if (!is_of_a_phase(span))
		return;
	go_on(clock, span->start_ns);
	clock->open = torsh_array_reserve(clock->open, clock->n_open, &clock->n_room,
					  sizeof(*clock->open));
	clock->open[clock->n_open++] =
		(struct open_phase){.ordinal = span->ordinal, .phase = span->phase};
}

void torsh_phase_clock_end(struct phase_clock *clock, const struct span *span)
{
	for (size_t i = clock->n_open; i-- > 0;) {
		if (clock->open[i].ordinal != span->ordinal)
			continue;
		go_on(clock, span->end_ns);
		clock->n_open--;
		memmove(&clock->open[i], &clock->open[i + 1],
			(clock->n_open - i) * sizeof(*clock->open));
		return;
	}
}

void torsh_phase_clock_stop(struct phase_clock *clock)
{
	go_on(clock, UINT64_MAX);
	free(clock->open);
	clock->open = NULL;
}
