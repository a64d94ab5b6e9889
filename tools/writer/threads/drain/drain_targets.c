/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The begin and end of a target, on the drain thread. */
#include <errno.h>
#include <stdlib.h>

#include "tools/base/containers/array.h"
#include "tools/writer/input/process_info.h"
#include "tools/writer/output/rows/rows.h"
#include "tools/writer/reachability/reachability.h"
#include "tools/writer/threads/drain/drain_state.h"
#include "tools/writer/threads/drain/exit_reply.h"

static void begin_session(struct drain *drain, const struct target *target)
{
	torsh_session_begin(&drain->session, target);
	torsh_session_write(&drain->session, &drain->requests.pauses, drain->checkpoints.file);
	drain->unfollowed_list.zero_ns = drain->session.monotonic_ns;
	torsh_drain_begin_clocks(drain);
}

static void begin_state(struct drain *drain, struct target *target)
{
	struct clock_conversion clock;

	torsh_session_measure(&drain->session, drain->targets, drain->n_targets);
	torsh_clock_rate_fix(&drain->session.rate);
	clock = torsh_session_clock(&drain->session, target);
	torsh_target_begin(target, &clock, &drain->tables);
	torsh_fork_ancestry_begin(&drain->ancestry, target);
	if (target->is_clock_foreign)
		torsh_process_state_note(
			&target->state,
			"its clock is ahead of the writer's: events of different threads were "
			"ordered only as they came");
	torsh_requests_join(&drain->requests, target);
	if (drain->options.is_full) {
		target->state.columns = torsh_columns_create();
		target->state.columns_failed = target->state.columns ? 0 : -ENOMEM;
	}
	if (drain->options.flight.unit != FLIGHT_OFF)
		target->state.definitions = torsh_timeline_create();
	target->state.pace.slow_percent = drain->options.keep.slow_percent;
	torsh_session_peak_join(&drain->session_peak, target, drain->targets, drain->n_targets);
}

/* What the process may wait for at its exit. */
static uint32_t exit_wishes(const struct drain *drain, const struct target *target)
{
	return (target->pid == drain->options.first_pid ? drain->options.exit_wishes : 0u) |
	       (target->start.wants_verdicts ? (uint32_t)EXIT_VERDICTS : 0u);
}

static void begin_target(struct drain *drain, struct target *target)
{
	bool is_first = !drain->session.has_begun;

	if (is_first)
		begin_session(drain, target);
	begin_state(drain, target);
	torsh_drain_see_clocks(drain, target);
	drain->targets = torsh_array_reserve(drain->targets, drain->n_targets,
					     &drain->target_capacity, sizeof(*drain->targets));
	drain->targets[drain->n_targets++] = target;
	torsh_pending_children_remove(&drain->pending_children, target->pid);
	torsh_pending_children_remove(&drain->pending_children, (pid_t)target->start.pid);
	torsh_rows_process(drain->checkpoints.file, target);
	torsh_exit_reply_promise(target, exit_wishes(drain, target));
	/* A checkpoint at time 0: the recording contains only the start of the first process. */
	if (is_first)
		torsh_checkpoints_end(&drain->checkpoints, torsh_clock_monotonic_ns(), 0);
	torsh_view_attach(&target->view);
	torsh_residency_begin(&drain->residency_pace, target, torsh_clock_monotonic_ns());
}

void torsh_drain_take_targets(struct drain *drain)
{
	struct target **targets;
	uint32_t n = torsh_mailbox_take_targets(&drain->mailbox, &targets);

	for (uint32_t i = 0; i < n; i++)
		begin_target(drain, targets[i]);
	if (n)
		drain->pace.last_active_ns = torsh_clock_monotonic_ns();
	free(targets);
}

static bool has_children(const struct target *target)
{
	return target->state.n_forks || torsh_process_state_is_executing(&target->state) ||
	       atomic_load_explicit(&target->view.header->counters[COUNTER_followed_children],
				    memory_order_relaxed);
}

static bool is_running(const struct drain *drain, uint32_t pid, const struct target *except)
{
	for (uint32_t i = 0; i < drain->n_targets; i++) {
		if (drain->targets[i]->start.pid == pid && drain->targets[i] != except)
			return true;
	}
	return false;
}

/* Children that it forked and that have not sent a hello yet may be about to. */
static void add_pending_children(struct drain *drain, const struct target *target)
{
	for (uint32_t i = 0; i < target->state.n_forks; i++) {
		pid_t pid = (pid_t)target->state.forks[i].child;

		if (!is_running(drain, (uint32_t)pid, target))
			torsh_pending_children_add(&drain->pending_children, pid,
						   torsh_clock_monotonic_ns());
	}
}

static void write_final_rows(struct drain *drain, struct target *target)
{
	torsh_checkpoints_events(&drain->checkpoints, target, 1);
	torsh_checkpoints_timeline(&drain->checkpoints, target, 1);
	torsh_flight_leave(&drain->checkpoints.flight, &target->state.passed);
	torsh_process_state_end_folding(&target->state);
	torsh_reachability_end(target->reachability);
	torsh_rows_target(drain->checkpoints.file, target, RECORDING_LAST);
	torsh_process_state_free_tables(&target->state);
	torsh_rows_symbols(drain->checkpoints.file, target, drain->book);
	torsh_checkpoints_poll(&drain->checkpoints);
}

void torsh_drain_finish_target(struct drain *drain, uint32_t i)
{
	struct target *target = drain->targets[i];
	int status;

	if (!torsh_process_wait_status(target->pidfd, target->stat_fd, &status))
		target->wait_status = status;
	if (torsh_view_rests(&target->view))
		torsh_process_state_note(
			&target->state,
			"its recording was ended by torsh stop; the process ran on");
	target->end_ns = torsh_session_ns(&drain->session, target->end_monotonic_ns);
	torsh_cost_update(&drain->checkpoints.cost, drain->targets, drain->n_targets,
			  &drain->tables);
	torsh_unfollowed_leave(&drain->unfollowed_list, target);
	torsh_session_measure(&drain->session, drain->targets, drain->n_targets);
	torsh_process_state_end_samples(&target->state);
	torsh_process_usage_end(&target->usage);
	torsh_drain_note_clocks(drain, target);
	torsh_drain_account_exit(drain, target);
	write_final_rows(drain, target);
	torsh_summary_add(&drain->summary, target);
	torsh_session_peak_leave(target);
	add_pending_children(drain, target);
	if (has_children(target))
		atomic_store_explicit(&drain->had_children, true, memory_order_release);
	torsh_fork_ancestry_end(&drain->ancestry, target);
	torsh_status_reader_remove(drain->status_reader, target);
	torsh_reachability_destroy(target->reachability);
	torsh_residency_destroy(target->residency);
	torsh_census_watch_destroy(target->census);
	torsh_view_leave(&target->view);
	drain->targets[i] = drain->targets[--drain->n_targets];
	torsh_target_destroy(target);
	/* Pairs with the acquire in torsh_drain_finished. */
	atomic_fetch_add_explicit(&drain->n_finished, 1, memory_order_release);
	torsh_mailbox_notify(&drain->mailbox);
}

bool torsh_drain_waits_for_parent(const struct target *target, uint64_t now_ns)
{
	return torsh_fork_ancestry_is_pending(target) &&
	       now_ns < target->end_monotonic_ns + FORK_TIMEOUT_NS;
}
