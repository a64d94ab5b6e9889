/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/session_peak.h"

#include <stdlib.h>

#include "tools/writer/input/order.h"

#define LAG_NS 100000000u /* what a process did before its hello was heard has its place in the session's sum */
#define LOGGED_MAX (1u << 20) /* changes that may wait for that */

/* Stamps of different clocks can't be put in order. */
static int has_clock(const struct together *together, const struct target *target)
{
	const struct ticks_clock *clock = &target->tally.clock;

	return !target->is_clock_foreign && clock->rate == together->clock.rate && clock->base == together->clock.base;
}

void torsh_together_destroy(struct together *together)
{
	torsh_joint_destroy(&together->joint);
	free(together->places.items);
	*together = (struct together){0};
}

void torsh_together_join(struct together *together, struct target *target, struct target *const *targets,
			 uint32_t n_targets)
{
	target->tally.process = target->number;
	if (target->number == 1) {
		together->clock = target->tally.clock;
		together->clock.lift = NULL; /* the target's memory goes */
	}
	if (!has_clock(together, target)) {
		torsh_tally_note(&target->tally, "its clock is not that of the session's first process: what it held "
						 "is not in the session's peak");
		return;
	}
	target->tally.joint = &together->joint;
	if (target->number == 1)
		return;
	for (uint32_t i = 0; i < n_targets; i++)
		torsh_tally_join(&targets[i]->tally);
	torsh_tally_join(&target->tally);
}

void torsh_together_leave(struct target *target)
{
	struct tally *tally = &target->tally;
	uint64_t now = torsh_ticks_now(&tally->clock), age;

	torsh_tally_join(tally);
	if (!tally->heap.joint)
		return;
	age = torsh_ticks_of_ns(&tally->clock, torsh_ticks_monotonic_ns() - target->end_monotonic_ns);
	torsh_joint_end(tally->heap.joint, tally->has_exited || torsh_tally_is_executing(tally) ? tally->last_stamp : now - age);
	tally->heap.joint = NULL;
}

void torsh_together_settle(struct together *together, struct target *const *targets, uint32_t n_targets)
{
	uint64_t bound = ORDER_NO_BOUND, lag;

	if (!together->joint.n_logged)
		return;
	if (together->joint.n_logged < LOGGED_MAX) {
		lag = torsh_ticks_of_ns(&together->clock, LAG_NS);
		bound = torsh_ticks_now(&together->clock) - lag;
	}
	for (uint32_t i = 0; i < n_targets; i++) {
		uint64_t own = torsh_target_bound(targets[i]);

		bound = targets[i]->tally.joint && own < bound ? own : bound;
	}
	if (bound != ORDER_NO_BOUND)
		torsh_joint_settle(&together->joint, bound);
}

void torsh_together_checkpoint(struct together *together, struct recording_file *file)
{
	torsh_axis_settle(&together->joint.axis);
	if (together->written == together->joint.axis.peak_number)
		return;
	torsh_rows_joint(file, &together->joint, &together->clock, RECORDING_CHECKPOINT, &together->places);
	together->written = together->joint.axis.peak_number;
}

void torsh_together_end(struct together *together, struct recording_file *file)
{
	torsh_joint_settle(&together->joint, UINT64_MAX);
	torsh_rows_joint(file, &together->joint, &together->clock, RECORDING_LAST, &together->places);
}
