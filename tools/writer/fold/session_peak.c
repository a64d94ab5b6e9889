/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/fold/session_peak.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tools/writer/input/order.h"

/*
 * changes older than this are final: a process that is about to send its hello may have younger
 * ones
 */
#define LAG_NS 100000000u
#define LOGGED_MAX (1u << 20) /* limit for unsettled changes */

/* Stamps of different clocks cannot be ordered. */
static bool has_clock(const struct session_peak *session_peak, const struct target *target)
{
	const struct clock_conversion *clock = &target->state.clock;

	return !target->is_clock_foreign && clock->rate == session_peak->clock.rate &&
	       clock->base == session_peak->clock.base;
}

void torsh_session_peak_destroy(struct session_peak *session_peak)
{
	torsh_session_heap_destroy(&session_peak->session_heap);
	free(session_peak->extents.items);
	*session_peak = (struct session_peak){0};
}

void torsh_session_peak_join(struct session_peak *session_peak, struct target *target,
			     struct target *const *targets, uint32_t n_targets)
{
	if (target->number == 1) {
		session_peak->clock = target->state.clock;
		session_peak->clock.lift = NULL; /* the target's memory is unmapped */
	}
	if (!has_clock(session_peak, target)) {
		torsh_process_state_note(
			&target->state,
			"its clock is not that of the session's first process: what it held "
			"is not in the session's peak");
		return;
	}
	target->state.session_heap = &session_peak->session_heap;
	if (target->number == 1)
		return;
	for (uint32_t i = 0; i < n_targets; i++)
		torsh_process_state_join(&targets[i]->state);
	torsh_process_state_join(&target->state);
}

void torsh_session_peak_leave(struct target *target)
{
	struct process_state *state = &target->state;
	uint64_t now = torsh_clock_now(&state->clock), age;

	torsh_process_state_join(state);
	if (!state->heap.session_heap)
		return;
	age = torsh_clock_stamps_of_ns(&state->clock,
				       torsh_clock_monotonic_ns() - target->end_monotonic_ns);
	torsh_session_heap_end(state->heap.session_heap,
			       state->has_exited || torsh_process_state_is_executing(state)
				       ? state->last_stamp
				       : now - age);
	state->heap.session_heap = NULL;
}

void torsh_session_peak_settle(struct session_peak *session_peak, struct target *const *targets,
			       uint32_t n_targets)
{
	uint64_t bound = ORDER_NO_BOUND, lag;

	if (!session_peak->session_heap.n_logged)
		return;
	if (session_peak->session_heap.n_logged < LOGGED_MAX) {
		lag = torsh_clock_stamps_of_ns(&session_peak->clock, LAG_NS);
		bound = torsh_clock_now(&session_peak->clock) - lag;
	}
	for (uint32_t i = 0; i < n_targets; i++) {
		uint64_t own = torsh_target_bound(targets[i]);

		bound = targets[i]->state.session_heap && own < bound ? own : bound;
	}
	if (bound != ORDER_NO_BOUND)
		torsh_session_heap_settle(&session_peak->session_heap, bound);
}

void torsh_session_peak_checkpoint(struct session_peak *session_peak, struct recording_file *file)
{
	torsh_peak_tracker_settle(&session_peak->session_heap.tracker);
	if (session_peak->written == session_peak->session_heap.tracker.peak_number)
		return;
	torsh_rows_session_peak(file, &session_peak->session_heap, &session_peak->clock,
				RECORDING_CHECKPOINT, &session_peak->extents);
	session_peak->written = session_peak->session_heap.tracker.peak_number;
}

void torsh_session_peak_end(struct session_peak *session_peak, struct recording_file *file)
{
	torsh_session_heap_settle(&session_peak->session_heap, UINT64_MAX);
	torsh_rows_session_peak(file, &session_peak->session_heap, &session_peak->clock,
				RECORDING_LAST, &session_peak->extents);
}
