/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/output/checkpoints.h"

#include <stdbool.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/base/containers/array.h"
#include "tools/base/memory.h"

#define FIRST_CHECKPOINT_NS UINT64_C(250000000)
#define SETTLE_EVERY_NS UINT64_C(2000000000) /* readers of the file have so long for a chunk */
#define CHECKPOINT_COST 100u /* a checkpoint uses at most this fraction of the time */

int torsh_checkpoints_open(struct checkpoints *checkpoints, int fd,
			   const struct recording_limits *limits, const struct flight_limit *flight,
			   bool is_full, uint64_t interval_ns)
{
	uint64_t first_ns = interval_ns < FIRST_CHECKPOINT_NS ? interval_ns : FIRST_CHECKPOINT_NS;
	struct timespec real;

	clock_gettime(CLOCK_REALTIME, &real);
	*checkpoints = (struct checkpoints){
		.file = torsh_recording_create(
			fd, limits, (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec),
		.is_full = is_full,
		.flight.limit = *flight,
		.interval_ns = interval_ns,
		.next_checkpoint_ns = torsh_clock_monotonic_ns() + first_ns,
		.step_ns = first_ns,
		.syncer = torsh_syncer_start(fd),
	};
	return checkpoints->file ? 0 : -ENOMEM;
}

void torsh_checkpoints_destroy(struct checkpoints *checkpoints)
{
	torsh_syncer_stop(checkpoints->syncer);
	torsh_flight_destroy(&checkpoints->flight);
	for (uint32_t i = 0; i < checkpoints->n_reasons; i++)
		free(checkpoints->reasons[i]);
	free(checkpoints->reasons);
}

void torsh_checkpoints_give_reason(struct checkpoints *checkpoints, const char *format,
				   const char *why)
{
	char text[CHECKPOINTS_REASON_BYTES];

	snprintf(text, sizeof(text), format, why);
	for (uint32_t i = 0; i < checkpoints->n_reasons; i++) {
		if (!strcmp(checkpoints->reasons[i], text))
			return;
	}
	checkpoints->reasons =
		torsh_array_reserve(checkpoints->reasons, checkpoints->n_reasons,
				    &checkpoints->reason_capacity, sizeof(*checkpoints->reasons));
	checkpoints->reasons[checkpoints->n_reasons++] = torsh_memory_text(text);
	fprintf(stderr, "torsh: %s\n", text);
}

void torsh_checkpoints_close(struct checkpoints *checkpoints, bool is_complete, uint64_t at_ns)
{
	const char *missed = torsh_recording_missed(checkpoints->file);
	struct rows_end end;

	if (missed)
		torsh_checkpoints_give_reason(
			checkpoints,
			"some of what was known at the end is not in the recording: %s", missed);
	end = (struct rows_end){
		.is_complete = is_complete && !missed,
		.at_ns = at_ns,
		.reasons = checkpoints->reasons,
		.n_reasons = checkpoints->n_reasons,
		.cost = &checkpoints->cost,
	};
	torsh_recording_free_extent(checkpoints->file, checkpoints->checkpoint);
	torsh_rows_end(checkpoints->file, &end);
	torsh_recording_finish(checkpoints->file);
	checkpoints->file = NULL;
}

void torsh_checkpoints_poll(struct checkpoints *checkpoints)
{
	const char *events = torsh_recording_stopped(checkpoints->file, RECORDING_EVENTS);
	const char *last = torsh_recording_stopped(checkpoints->file, RECORDING_LAST);
	const char *checkpoint = torsh_recording_stopped(checkpoints->file, RECORDING_CHECKPOINT);

	if (last)
		torsh_checkpoints_give_reason(checkpoints, "the recording stopped: %s", last);
	else if (checkpoint)
		torsh_checkpoints_give_reason(checkpoints, "stopped writing until the end: %s",
					      checkpoint);
	else if (events && checkpoints->is_full)
		torsh_checkpoints_give_reason(
			checkpoints, "stopped keeping events, all else goes on: %s", events);
}

void torsh_checkpoints_events(struct checkpoints *checkpoints, struct target *target,
			      uint32_t n_least)
{
	struct process_state *state = &target->state;
	uint32_t n_lost = torsh_rows_events(checkpoints->file, target, n_least);

	if (!n_lost && !state->columns_failed)
		return;
	if (state->columns_failed)
		torsh_checkpoints_give_reason(checkpoints,
					      "stopped keeping events, all else goes on: %s",
					      strerror(-state->columns_failed));
	else
		state->columns_failed = -ENOSPC;
	state->losses[WRITER_LOSS_events_unkept] +=
		n_lost + (state->columns ? torsh_columns_count(state->columns) : 0);
	torsh_process_state_note(
		state, "not all events were kept in the recording; the totals have them all");
	torsh_columns_destroy(state->columns);
	state->columns = NULL;
	torsh_checkpoints_poll(checkpoints);
}

void torsh_checkpoints_timeline(struct checkpoints *checkpoints, struct target *target,
				uint32_t n_least)
{
	struct process_state *state = &target->state;

	uint32_t n_lost =
		torsh_rows_timeline(checkpoints->file, &checkpoints->flight, target, n_least);

	if (!n_lost && !state->timeline_failed)
		return;
	if (!state->timeline_failed)
		state->timeline_failed = -ENOSPC;
	state->losses[WRITER_LOSS_timeline_unkept] +=
		n_lost + (state->timeline ? torsh_timeline_count(state->timeline) : 0);
	torsh_process_state_note(state, "not all of the timeline was kept in the recording: %s",
				 strerror(-state->timeline_failed));
	torsh_timeline_destroy(state->timeline);
	torsh_timeline_destroy(state->definitions);
	state->timeline = state->definitions = NULL;
	torsh_checkpoints_poll(checkpoints);
}

void torsh_checkpoints_flight(struct checkpoints *checkpoints, struct target *target,
			      uint64_t now_ns)
{
	const struct process_state *state = &target->state;

	if (!state->timeline || !torsh_timeline_count(state->timeline) ||
	    !torsh_flight_is_due(&checkpoints->flight,
				 state->timeline_last_ns - state->timeline_first_ns,
				 state->steps.n_steps - state->timeline_steps))
		return;
	torsh_checkpoints_timeline(checkpoints, target, 1);
	if (now_ns - checkpoints->settled_ns < SETTLE_EVERY_NS)
		return;
	checkpoints->settled_ns = now_ns;
	torsh_recording_settle(checkpoints->file);
}

void torsh_checkpoints_write(struct checkpoints *checkpoints, struct target *target)
{
	if (target->n_written == target->state.n_folded)
		return;
	target->n_written = target->state.n_folded;
	torsh_checkpoints_events(checkpoints, target, 1);
	torsh_checkpoints_timeline(checkpoints, target, 1);
	torsh_flight_let_pass(&checkpoints->flight, checkpoints->file, target->number,
			      target->state.steps.n_steps, target->state.timeline_last_ns);
	torsh_rows_target(checkpoints->file, target, RECORDING_CHECKPOINT);
}

void torsh_checkpoints_end(struct checkpoints *checkpoints, uint64_t begin_ns, uint64_t at_ns)
{
	uint64_t took_ns, pause_ns;

	torsh_rows_checkpoint(checkpoints->file, at_ns, &checkpoints->cost,
			      &checkpoints->checkpoint);
	if (checkpoints->syncer)
		torsh_syncer_request(checkpoints->syncer);
	took_ns = torsh_clock_monotonic_ns() - begin_ns;
	pause_ns = took_ns * CHECKPOINT_COST;
	if (pause_ns < checkpoints->step_ns)
		pause_ns = checkpoints->step_ns;
	checkpoints->step_ns = checkpoints->step_ns * 2 < checkpoints->interval_ns
				       ? checkpoints->step_ns * 2
				       : checkpoints->interval_ns;
	checkpoints->next_checkpoint_ns = begin_ns + pause_ns;
}
