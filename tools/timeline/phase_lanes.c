/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/timeline/phase_lanes.h"

#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"

static void add_lane(struct phase_lanes *lanes, const struct step_slice *slices, size_t n,
		     size_t *n_room)
{
	struct phase_lane *lane;

	lanes->lanes = torsh_array_reserve(lanes->lanes, lanes->n, n_room, sizeof(*lanes->lanes));
	lane = &lanes->lanes[lanes->n++];
	lane->thread = slices->thread;
	lane->slices = slices;
	lane->steps.n = n;
	lane->steps.items = torsh_need_items(NULL, 0, n, sizeof(*lane->steps.items));
	lane->spent = torsh_need_items(NULL, 0, n, sizeof(*lane->spent));
	for (size_t i = 0; i < n; i++) {
		lane->steps.items[i].start_ns = slices[i].start_ns;
		lane->steps.items[i].end_ns = slices[i].end_ns;
	}
}

void torsh_phase_lanes_start(struct phase_lanes *lanes, const struct steps *steps,
			     struct phase_step *spent)
{
	size_t n_room = 0;

	*lanes = (struct phase_lanes){.steps = steps, .spent = spent};
	if (!steps->slices) {
		torsh_phase_clock_start(&lanes->whole, steps, spent);
		return;
	}
	for (size_t i = 0, end; i < steps->n_slices; i = end) {
		end = i;
		while (end < steps->n_slices &&
		       steps->slices[end].thread == steps->slices[i].thread)
			end++;
		add_lane(lanes, &steps->slices[i], end - i, &n_room);
	}
	for (size_t i = 0; i < lanes->n; i++)
		torsh_phase_clock_start(&lanes->lanes[i].clock, &lanes->lanes[i].steps,
					lanes->lanes[i].spent);
}

/* Returns the clock of the thread, or NULL: it works on no step. */
static struct phase_clock *clock_of(struct phase_lanes *lanes, uint32_t thread)
{
	if (!lanes->steps->slices)
		return &lanes->whole;
	for (size_t i = 0; i < lanes->n; i++) {
		if (lanes->lanes[i].thread == thread)
			return &lanes->lanes[i].clock;
	}
	return NULL;
}

void torsh_phase_lanes_begin(struct phase_lanes *lanes, const struct span *span)
{
	struct phase_clock *clock = clock_of(lanes, span->thread);

	if (clock)
		torsh_phase_clock_begin(clock, span);
}

void torsh_phase_lanes_end(struct phase_lanes *lanes, const struct span *span)
{
	struct phase_clock *clock = clock_of(lanes, span->thread);

	if (clock)
		torsh_phase_clock_end(clock, span);
}

/* Add the slices' phases to those of their steps. */
static void take_lane(struct phase_lanes *lanes, struct phase_lane *lane)
{
	torsh_phase_clock_stop(&lane->clock);
	for (size_t i = 0; i < lane->steps.n; i++) {
		for (size_t phase = 0; phase < N_PHASES; phase++)
			lanes->spent[lane->slices[i].step].phase_ns[phase] +=
				lane->spent[i].phase_ns[phase];
	}
	free(lane->steps.items);
	free(lane->spent);
}

void torsh_phase_lanes_stop(struct phase_lanes *lanes)
{
	if (!lanes->steps->slices) {
		torsh_phase_clock_stop(&lanes->whole);
		return;
	}
	for (size_t i = 0; i < lanes->n; i++)
		take_lane(lanes, &lanes->lanes[i]);
	free(lanes->lanes);
	for (size_t i = 0; i < lanes->steps->n; i++) {
		const struct step *step = &lanes->steps->items[i];
		uint64_t in_phases_ns = 0, duration_ns = step->end_ns - step->start_ns;

		for (size_t phase = 0; phase < N_PHASES; phase++)
			in_phases_ns += lanes->spent[i].phase_ns[phase];
		lanes->spent[i].other_ns =
			duration_ns > in_phases_ns ? duration_ns - in_phases_ns : 0;
	}
}
