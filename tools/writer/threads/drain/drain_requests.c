/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the drain thread hands out: answers to clients' requests, the reply to the first process at
 * its exit, and the recordings of out-of-memory errors.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/writer/input/process_info.h"
#include "tools/writer/output/rows/rows.h"
#include "tools/writer/reachability/reachability.h"
#include "tools/writer/threads/drain/drain_state.h"
#include "tools/writer/threads/drain/exit_reply.h"
#include "tools/writer/threads/drain/program_calls.h"

static struct target *find_number(const struct drain *drain, uint32_t number)
{
	for (uint32_t i = 0; i < drain->n_targets; i++) {
		if (drain->targets[i]->number == number)
			return drain->targets[i];
	}
	return NULL;
}

/* The call of a program to pause or resume has been carried out. */
static void reply_to_pause(struct drain *drain, const struct program_call *call, bool is_change)
{
	struct target *caller = find_number(drain, call->target);

	if (caller)
		torsh_program_call_reply(caller, call, is_change ? 0 : -EALREADY);
}

/* A client asks for a copy. */
static void keep(struct drain *drain, struct queued_request *queued)
{
	int number = -ESRCH;

	for (uint32_t i = 0; i < drain->n_targets && number == -ESRCH; i++) {
		if ((uint32_t)drain->targets[i]->pid == queued->request.pid ||
		    drain->targets[i]->start.pid == queued->request.pid)
			number = torsh_keeps_keep(&drain->keeps, drain->targets[i], KEEP_REQUESTED,
						  "torsh keep %u", queued->request.pid);
	}
	queued->answer.n_processes = drain->n_targets;
	queued->answer.recording_bytes = number > 0 ? (uint64_t)number : 0;
	torsh_request_queue_answer(&drain->requests.queue, queued, number > 0 ? 0 : number);
}

static void take_request(struct drain *drain, struct queued_request *queued)
{
	struct program_call call = queued->call;
	bool is_change;

	/* Targets that sent their hello before the request are part of the answer. */
	torsh_drain_take_targets(drain);
	if (queued->request.verb == REQUEST_KEEP) {
		keep(drain, queued);
		return;
	}
	is_change = torsh_requests_take(&drain->requests, queued, drain->targets, drain->n_targets);
	if (is_change && drain->session.has_begun)
		torsh_session_write(&drain->session, &drain->requests.pauses,
				    drain->checkpoints.file);
	if (call.target && !drain->requests.current)
		reply_to_pause(drain, &call, is_change);
}

/* Returns whether the request that waits for verdicts is about the target. */
static bool is_about(const struct drain *drain, const struct target *target)
{
	uint32_t pid = drain->to_judge ? drain->to_judge->request.pid : 0;

	return drain->to_judge &&
	       (!pid || (uint32_t)target->pid == pid || target->start.pid == pid);
}

static bool is_judged_for_request(const struct drain *drain, const struct target *target)
{
	return target->reachability && target->reachability->judged_for == drain->judge_number;
}

/* Take the request that waits for verdicts, once they are there. */
static void take_judged(struct drain *drain)
{
	struct queued_request *queued = drain->to_judge;

	for (uint32_t i = 0; i < drain->n_targets; i++) {
		if (is_about(drain, drain->targets[i]) &&
		    !is_judged_for_request(drain, drain->targets[i]))
			return;
	}
	drain->to_judge = NULL;
	take_request(drain, queued);
}

void torsh_drain_take_requests(struct drain *drain)
{
	struct queued_request *queued;

	if (drain->to_judge)
		take_judged(drain);
	while (!drain->to_judge && (queued = torsh_requests_next(&drain->requests))) {
		if (queued->request.verb == REQUEST_JUDGED_SNAPSHOT) {
			torsh_drain_take_targets(drain);
			drain->to_judge = queued;
			drain->judge_number++;
			drain->is_judging = true;
		} else {
			take_request(drain, queued);
		}
	}
}

/* Signals to a process of the session; each makes a change, whatever the state is by then. */
static void check_signals(struct drain *drain, struct target *target)
{
	struct channel_header *header = target->view.header;
	uint32_t switches = atomic_load_explicit(&header->switch_signals, memory_order_acquire);
	uint32_t keeps = atomic_load_explicit(&header->keep_signals, memory_order_acquire);
	bool is_odd = (switches - target->n_switch_signals) & 1;

	target->n_switch_signals = switches;
	if (is_odd) {
		const struct program_call call = {
			.verb = torsh_pauses_is_paused(&drain->requests.pauses) ? CALL_RESUME
										: CALL_PAUSE};

		torsh_drain_request(drain, torsh_program_call_queue(&call));
	}
	if (keeps == target->n_keep_signals)
		return;
	target->n_keep_signals = keeps;
	torsh_keeps_keep(&drain->keeps, target, KEEP_SEEN, "process %d got the signal for that",
			 (int)target->pid);
}

void torsh_drain_check_call(struct drain *drain, struct target *target)
{
	struct program_call call;

	check_signals(drain, target);
	if (!torsh_program_call_take(target, &call))
		return;
	if (call.verb >= CALL_SNAPSHOT && call.verb <= CALL_LEAKS)
		torsh_file_call_begin(&drain->file_calls, target, &call);
	else
		torsh_drain_request(drain, torsh_program_call_queue(&call));
}

static void answer_call(struct drain *drain)
{
	const struct program_call *call = &drain->requests.current->call;
	struct target *caller = find_number(drain, call->target);

	if (caller)
		torsh_program_call_answer(caller, call);
	torsh_requests_done(&drain->requests, drain->targets, drain->n_targets);
}

void torsh_drain_keep_out_of_memory(struct drain *drain, struct target *target)
{
	const struct process_state *state = &target->state;
	struct rows_session row = torsh_session_snapshot(
		&drain->session, &drain->requests.pauses,
		torsh_clock_to_ns(&state->clock, state->out_of_memory.stamp));

	torsh_out_of_memory_keep(&drain->out_of_memory, target, &row);
	if (drain->keeps.limits.on_memory)
		torsh_keeps_keep(&drain->keeps, target, KEEP_SEEN, "process %d is out of memory",
				 (int)target->pid);
	torsh_pauses_release(&row);
}

/* ---- exits ----------------------------------------------------------------------------------- */

static struct residency_moment residency_moment(const struct drain *drain, struct target *target)
{
	struct memory_left left = torsh_memory_limit_left(&drain->memory_limit);
	uint64_t now_ns = torsh_clock_monotonic_ns();

	return (struct residency_moment){
		.target = target,
		.is_first = target->pid == drain->options.first_pid,
		.targets = drain->targets,
		.n_targets = drain->n_targets,
		.at_ns = torsh_session_ns(&drain->session, now_ns),
		.now_ns = now_ns,
		.left_bytes = left.bytes,
	};
}

void torsh_drain_check_residency(struct drain *drain, struct target *target, uint64_t now_ns)
{
	struct residency_moment moment;

	torsh_residency_sample(target);
	torsh_census_watch(target, &drain->census_pace, now_ns,
			   torsh_session_ns(&drain->session, now_ns));
	if (!torsh_residency_is_due(target, &drain->residency_pace, now_ns))
		return;
	moment = residency_moment(drain, target);
	drain->is_judging |= torsh_residency_watch(&drain->residency_pace, &moment);
}

/* The target waits at its exit: look at its memory, before it gives that back. */
static void look_at_exit(struct drain *drain, struct target *target, bool is_held)
{
	struct residency_moment moment = residency_moment(drain, target);

	torsh_residency_exit_look(&drain->residency_pace, &moment, is_held);
}

static void look_held(void *context, struct target *target)
{
	look_at_exit(context, target, true);
}

/* It need not wait for this. */
static void collect_at_exit(struct drain *drain, struct target *target)
{
	struct residency_moment moment = residency_moment(drain, target);

	torsh_residency_exit_collect(&moment);
}

void torsh_drain_account_exit(struct drain *drain, struct target *target)
{
	struct residency_moment moment = residency_moment(drain, target);

	torsh_residency_exit_end(&drain->residency_pace, &moment);
}

/* Returns true when the target need not wait for its verdicts any more, or that was given up. */
static bool judge(struct drain *drain, struct target *target, enum judge_when when)
{
	const struct judging_request request = {
		.when = when,
		.left_bytes = torsh_memory_limit_left(&drain->memory_limit).bytes,
		.held = when == JUDGE_IN_RUN ? NULL : look_held,
		.context = drain,
		.wake_word = &drain->mailbox.wake_word,
	};

	torsh_residency_drop(target);
	if (torsh_reachability_judge(target, &request) == JUDGING_IS_DONE)
		return true;
	drain->is_judging = true;
	return false;
}

void torsh_drain_check_judged(struct drain *drain, struct target *target)
{
	const struct reachability *reachability = target->reachability;
	bool is_last = reachability && reachability->is_done;

	if (!is_about(drain, target) || is_judged_for_request(drain, target))
		return;
	/* After its exit was judged the process ends: a later attempt would replace that. */
	if (is_last ? !torsh_reachability_is_busy(reachability)
		    : judge(drain, target, JUDGE_IN_RUN))
		target->reachability->judged_for = drain->judge_number;
	/* The request is taken in the next pass. */
	drain->is_judging = true;
}

void torsh_drain_check_exit_begin(struct drain *drain, struct target *target)
{
	if (!torsh_exit_begin_is_awaited(target) || !judge(drain, target, JUDGE_AT_EXIT_BEGIN))
		return;
	look_at_exit(drain, target, false);
	torsh_exit_begin_reply(target);
	collect_at_exit(drain, target);
}

/* Returns true once the exiting process has its verdicts, or none are due. */
static bool is_judged(struct drain *drain, struct target *target)
{
	struct reachability *reachability = target->reachability;

	if (!target->start.wants_verdicts || (reachability && reachability->is_done))
		return true;
	if (!judge(drain, target, JUDGE_AT_EXIT))
		return false;
	target->reachability->is_done = true;
	return true;
}

/* What is written before the first process ends has everyone's verdicts. */
static bool waits_for_results(const struct drain *drain)
{
	if (!(drain->options.exit_wishes & (EXIT_EXPORTS | EXIT_WHOLE)))
		return false;
	for (uint32_t i = 0; i < drain->n_targets; i++) {
		if (torsh_reachability_is_busy(drain->targets[i]->reachability))
			return true;
	}
	return false;
}

void torsh_drain_check_exit_wait(struct drain *drain, struct target *target)
{
	const struct request none = {.verb = REQUEST_EXIT_REPLY};

	/* The first process's answer comes once per session, with a text. */
	if (target->number == drain->exiting || !torsh_exit_reply_is_awaited(target) ||
	    !is_judged(drain, target))
		return;
	look_at_exit(drain, target, false);
	torsh_exit_judged(target);
	if (drain->exiting || target->pid != drain->options.first_pid) {
		torsh_exit_reply_send(target, "");
		collect_at_exit(drain, target);
		return;
	}
	if (waits_for_results(drain))
		return;
	/* What is written before it ends has its account. */
	if (drain->options.exit_wishes & (EXIT_EXPORTS | EXIT_WHOLE))
		torsh_drain_account_exit(drain, target);
	drain->exiting = target->number;
	torsh_drain_request(drain, torsh_queued_request_create(&none, NULL));
}

void torsh_drain_send_exit_reply(struct drain *drain)
{
	char *text = torsh_mailbox_take_exit_text(&drain->mailbox);
	struct target *exiting = text ? find_number(drain, drain->exiting) : NULL;

	if (exiting && !torsh_process_has_ended(exiting->pidfd)) {
		torsh_exit_reply_send(exiting, text);
		drain->has_replied_to_exit = true;
	}
	if (exiting)
		collect_at_exit(drain, exiting);
	free(text);
}

/* Write the recording as if the session ended now; what comes later is appended to it. */
static void write_whole(struct drain *drain)
{
	static char why[] =
		"the writer ends with its PID namespace, and process 1 of that may have ended now: of other "
		"processes that ran then, the end is not known";
	char *reasons[] = {why};
	uint64_t at_ns = torsh_session_ns(&drain->session, torsh_clock_monotonic_ns());
	const struct rows_end end = {
		.is_complete = drain->n_targets == 1,
		.at_ns = at_ns,
		.reasons = reasons,
		.n_reasons = drain->n_targets > 1,
		.cost = &drain->checkpoints.cost,
	};

	torsh_cost_update(&drain->checkpoints.cost, drain->targets, drain->n_targets,
			  &drain->tables);
	for (uint32_t i = 0; i < drain->n_targets; i++) {
		struct target *target = drain->targets[i];

		target->end_ns = at_ns;
		torsh_checkpoints_events(&drain->checkpoints, target, 1);
		torsh_checkpoints_timeline(&drain->checkpoints, target, 1);
		torsh_rows_target(drain->checkpoints.file, target, RECORDING_LAST);
		torsh_rows_symbols(drain->checkpoints.file, target, drain->book);
	}
	if (drain->ancestry.n > 1)
		torsh_session_peak_checkpoint(&drain->session_peak, drain->checkpoints.file);
	torsh_unfollowed_write(&drain->unfollowed_list, &drain->ancestry, drain->checkpoints.file);
	torsh_rows_end(drain->checkpoints.file, &end);
}

/* Returns the current summary, including the exiting process; the caller frees it. NULL: none. */
static char *make_summary(struct drain *drain, const struct target *exiting)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		return NULL;
	torsh_summary_add(&drain->summary, exiting);
	torsh_summary_print(out, &drain->summary, drain->options.recording_path);
	drain->summary.n--;
	fclose(out);
	return text;
}

/* The first process waits at its exit, and everything that it committed before is folded. */
static void prepare_exit_reply(struct drain *drain)
{
	struct queued_request *queued = drain->requests.current;
	struct target *exiting = find_number(drain, drain->exiting);

	if (exiting && drain->options.exit_wishes & EXIT_SUMMARY)
		queued->text = make_summary(drain, exiting);
	if (exiting && drain->options.exit_wishes & EXIT_WHOLE)
		write_whole(drain);
	torsh_requests_done(&drain->requests, drain->targets, drain->n_targets);
}

/* ---- clients --------------------------------------------------------------------------------- */

static void answer_client(struct drain *drain)
{
	const struct session *session = &drain->session;
	const struct clock_instant *moment = &drain->requests.moment;
	struct snapshot snapshot = {
		.session = torsh_session_snapshot(
			session, &drain->requests.pauses,
			session->has_begun ? torsh_session_ns(session, moment->ns) : 0),
		.targets = drain->targets,
		.n_targets = drain->n_targets,
		.session_heap = drain->ancestry.n > 1 ? &drain->session_peak.session_heap : NULL,
		.session_clock = &drain->session_peak.clock,
	};

	/*
	 * A target that sent its hello before the request is among the targets: no other can have
	 * changes before the moment.
	 */
	if (snapshot.session_heap)
		torsh_session_heap_settle(
			snapshot.session_heap,
			torsh_clock_instant_to_stamp(&drain->session_peak.clock, moment) + 1);
	/* A snapshot has no timeline: the recording contains it up to the moment. */
	for (uint32_t i = 0; torsh_requests_is_whole(&drain->requests) && i < drain->n_targets; i++)
		torsh_checkpoints_timeline(&drain->checkpoints, drain->targets[i], 1);
	torsh_requests_answer(&drain->requests, &snapshot, drain->options.recording_fd,
			      torsh_recording_written(drain->checkpoints.file));
	torsh_pauses_release(&snapshot.session);
}

void torsh_drain_answer(struct drain *drain)
{
	if (drain->requests.current->request.verb == REQUEST_EXIT_REPLY)
		prepare_exit_reply(drain);
	else if (drain->requests.current->request.verb == REQUEST_PROGRAM_CALL)
		answer_call(drain);
	else
		answer_client(drain);
	/* The next request may be there already. */
	torsh_mailbox_wake(&drain->mailbox);
}
