/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The drain thread's loop, and the functions that other threads call. */
#include "tools/writer/threads/drain/drain.h"

#include <stdlib.h>
#include <time.h>

#include "tools/base/memory.h"
#include "tools/writer/input/order.h"
#include "tools/writer/input/process_info.h"
#include "tools/writer/reachability/image/stopped_threads.h"
#include "tools/writer/reachability/reachability.h"
#include "tools/writer/threads/drain/drain_state.h"

#define EVENTS_CHUNK (1u << 18)
#define RESULTS_STEP_NS UINT64_C(20000000)
#define FLIGHT_BUDGET 4096u /* of a flight recorder, whose messages have at most a pass */

/* ---- called by other threads ----------------------------------------------------------------- */

void torsh_drain_add(struct drain *drain, struct target *target)
{
	torsh_status_reader_add(drain->status_reader, target);
	torsh_mailbox_put_target(&drain->mailbox, target);
}

void torsh_drain_set_fate(struct drain *drain, struct target *target, enum target_fate fate)
{
	target->end_monotonic_ns = torsh_clock_monotonic_ns();
	/* Pairs with the acquire in torsh_target_drain: from then on its rings do not change. */
	atomic_store_explicit(&target->fate, fate, memory_order_release);
	torsh_mailbox_wake(&drain->mailbox);
}

struct unfollowed *torsh_drain_take_unfollowed(struct drain *drain)
{
	return torsh_mailbox_take_unfollowed(&drain->mailbox);
}

void torsh_drain_set_unfollowed_fate(struct drain *drain, struct unfollowed *unfollowed,
				     enum target_fate fate)
{
	int status;

	unfollowed->end_monotonic_ns = torsh_clock_monotonic_ns();
	if (fate == TARGET_DIED &&
	    !torsh_process_wait_status(unfollowed->pidfd, unfollowed->stat_fd, &status))
		unfollowed->wait_status = status;
	/* Pairs with the acquire in torsh_unfollowed_write. */
	atomic_store_explicit(&unfollowed->fate, fate, memory_order_release);
	torsh_mailbox_wake(&drain->mailbox);
}

uint64_t torsh_drain_finished(struct drain *drain)
{
	return atomic_load_explicit(&drain->n_finished, memory_order_acquire);
}

uint64_t torsh_drain_cpu_ns(const struct drain *drain)
{
	struct timespec spent = {0};
	clockid_t clock;

	if (pthread_getcpuclockid(drain->thread, &clock) || clock_gettime(clock, &spent))
		return 0;
	return (uint64_t)spent.tv_sec * 1000000000u + (uint64_t)spent.tv_nsec;
}

bool torsh_drain_must_end(struct drain *drain)
{
	return atomic_load_explicit(&drain->is_memory_short, memory_order_acquire);
}

bool torsh_drain_had_children(struct drain *drain)
{
	return atomic_load_explicit(&drain->had_children, memory_order_acquire);
}

bool torsh_drain_is_keeping(struct drain *drain)
{
	return atomic_load_explicit(&drain->is_keeping, memory_order_acquire);
}

bool torsh_drain_has_pending_child(struct drain *drain)
{
	return torsh_pending_children_any(&drain->pending_children, torsh_clock_monotonic_ns());
}

void torsh_drain_request(struct drain *drain, struct queued_request *queued)
{
	torsh_request_queue_put(&drain->requests.queue, queued);
	torsh_mailbox_wake(&drain->mailbox);
}

struct queued_request *torsh_drain_take_answer(struct drain *drain)
{
	return torsh_request_queue_take_answer(&drain->requests.queue);
}

void torsh_drain_reply_to_exit(struct drain *drain, const char *text)
{
	torsh_mailbox_put_exit_text(&drain->mailbox, text);
}

bool torsh_drain_has_replied_to_exit(const struct drain *drain)
{
	return drain->has_replied_to_exit;
}

/* ---- the recording --------------------------------------------------------------------------- */

/* Returns the session time up to which everything is folded. */
static uint64_t folded_until_ns(const struct drain *drain, uint64_t now)
{
	uint64_t until = torsh_session_ns(&drain->session, now);

	for (uint32_t i = 0; i < drain->n_targets; i++) {
		const struct target *target = drain->targets[i];
		uint64_t bound = torsh_target_bound(target);
		uint64_t own = bound == ORDER_NO_BOUND
				       ? until
				       : torsh_clock_to_ns(&target->state.clock, bound);

		until = own < until ? own : until;
	}
	return until;
}

static void checkpoint(struct drain *drain, uint64_t now)
{
	struct recording_file *file = drain->checkpoints.file;
	uint64_t until = folded_until_ns(drain, now);

	torsh_cost_update(&drain->checkpoints.cost, drain->targets, drain->n_targets,
			  &drain->tables);
	for (uint32_t i = 0; i < drain->n_targets; i++)
		torsh_checkpoints_write(&drain->checkpoints, drain->targets[i]);
	if (drain->ancestry.n > 1)
		torsh_session_peak_checkpoint(&drain->session_peak, file);
	torsh_unfollowed_write(&drain->unfollowed_list, &drain->ancestry, file);
	torsh_drain_write_clocks(drain, false);
	torsh_drain_write_devices(drain, false);
	torsh_drain_write_traffic(drain, false);
	torsh_checkpoints_poll(&drain->checkpoints);
	torsh_checkpoints_end(&drain->checkpoints, now, until);
}

static void end_recording(struct drain *drain, bool is_complete)
{
	struct recording_file *file = drain->checkpoints.file;
	uint64_t now = torsh_clock_monotonic_ns();

	torsh_clock_probes_stop(drain->clocks);
	torsh_drain_write_clocks(drain, true);
	if (drain->ancestry.n > 1)
		torsh_session_peak_end(&drain->session_peak, file);
	torsh_unfollowed_end(&drain->unfollowed_list, &drain->ancestry, file);
	torsh_drain_write_devices(drain, true);
	torsh_drain_write_traffic(drain, true);
	torsh_checkpoints_close(&drain->checkpoints, is_complete,
				drain->session.has_begun ? torsh_session_ns(&drain->session, now)
							 : 0);
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Called by torsh_unfollowed_take. */
static void watch_unfollowed(void *context, struct unfollowed *unfollowed)
{
	struct drain *drain = context;

	torsh_mailbox_put_unfollowed(&drain->mailbox, unfollowed);
}

static void add_pass(struct target_pass *sum, const struct target_pass *pass)
{
	sum->n_copied += pass->n_copied;
	sum->n_folded += pass->n_folded;
	sum->n_ended += pass->n_ended;
	if (pass->fill_percent > sum->fill_percent)
		sum->fill_percent = pass->fill_percent;
}

/* Processes that wait see a heartbeat, and results are taken when they are there. */
static void watch_soon(struct drain *drain, uint64_t now)
{
	if (drain->pace.next_watch_ns > now + RESULTS_STEP_NS)
		drain->pace.next_watch_ns = now + RESULTS_STEP_NS;
}

/* Whether the target's steps are a cause to keep a copy, now or if none comes. */
static void check_keeps(struct drain *drain, struct target *target, uint64_t now)
{
	uint64_t session_ns = torsh_session_ns(&drain->session, now), next_ns;

	if (!drain->keeps.is_on)
		return;
	torsh_keeps_check(&drain->keeps, target, now, session_ns);
	next_ns = torsh_keeps_next_ns(&drain->keeps, target, now, session_ns);
	if (next_ns < drain->pace.next_watch_ns)
		drain->pace.next_watch_ns = next_ns;
}

/* Copies that are being written, and those that other writers keep. */
static void poll_keeps(struct drain *drain, uint64_t now)
{
	uint64_t session_ns = torsh_session_ns(&drain->session, now);

	drain->keeps.span_ns = torsh_flight_span_ns(&drain->checkpoints.flight, session_ns);
	torsh_keeps_poll(&drain->keeps, drain->targets, drain->n_targets);
	/* Pairs with the acquire in torsh_drain_is_keeping. */
	atomic_store_explicit(&drain->is_keeping, torsh_keeps_is_busy(&drain->keeps),
			      memory_order_release);
	drain->checkpoints.flight.is_held =
		torsh_keeps_is_busy(&drain->keeps) || drain->keeps.pending;
	if (drain->checkpoints.flight.is_held)
		watch_soon(drain, now);
}

static uint32_t budget(const struct drain *drain)
{
	return drain->options.flight.unit == FLIGHT_OFF ? PACE_BUDGET : FLIGHT_BUDGET;
}

static struct target_pass drain_all(struct drain *drain)
{
	struct target_pass sum = {0};
	uint64_t now = torsh_clock_monotonic_ns();

	drain->pace.next_watch_ns = now + PACE_DEEP_NS;
	torsh_threads_settle();
	drain->is_judging = false;
	for (uint32_t i = drain->n_targets; i-- > 0;) {
		struct target *target = drain->targets[i];
		struct target_pass pass = {0};
		uint64_t next_watch_ns = torsh_target_watch(target, now);

		atomic_fetch_add_explicit(&target->view.header->heartbeat, 1, memory_order_relaxed);
		if (next_watch_ns < drain->pace.next_watch_ns)
			drain->pace.next_watch_ns = next_watch_ns;
		torsh_drain_check_residency(drain, target, now);
		torsh_fork_ancestry_inherit(&drain->ancestry, target);
		if (!target->is_drained)
			pass = torsh_target_drain(target, now, budget(drain));
		torsh_drain_check_devices(drain, target);
		torsh_drain_check_traffic(drain, target);
		if (target->state.is_out_of_memory)
			torsh_drain_keep_out_of_memory(drain, target);
		add_pass(&sum, &pass);
		check_keeps(drain, target, now);
		torsh_checkpoints_events(&drain->checkpoints, target, EVENTS_CHUNK);
		torsh_checkpoints_timeline(&drain->checkpoints, target, EVENTS_CHUNK);
		torsh_checkpoints_flight(&drain->checkpoints, target, now);
		torsh_unfollowed_take(&drain->unfollowed_list, target, watch_unfollowed, drain);
		torsh_drain_check_judged(drain, target);
		torsh_drain_check_exit_begin(drain, target);
		torsh_drain_check_exit_wait(drain, target);
		torsh_drain_check_call(drain, target);
		if (torsh_reachability_is_busy(target->reachability))
			watch_soon(drain, now);
		else if (target->is_drained && !torsh_drain_waits_for_parent(target, now))
			torsh_drain_finish_target(drain, i);
	}
	return sum;
}

/*
 * If the control group runs short of memory, the writer stores less. If the kernel is about to kill
 * a process of the group, the writer ends and leaves its memory to the program.
 */
static void check_memory(struct drain *drain, uint64_t now)
{
	uint64_t session_ns = torsh_session_ns(&drain->session, now);
	char why[CHECKPOINTS_REASON_BYTES];
	struct memory_left left;

	if (now < drain->next_memory_check_ns ||
	    atomic_load_explicit(&drain->is_memory_short, memory_order_relaxed))
		return;
	left = torsh_memory_limit_left(&drain->memory_limit);
	drain->next_memory_check_ns = now + torsh_memory_limit_check_after_ns(&left);
	torsh_shortage_update(&drain->shortage, &left, drain->targets, drain->n_targets,
			      session_ns);
	if (!torsh_memory_limit_is_short(&left, session_ns, why, sizeof(why)))
		return;
	torsh_checkpoints_give_reason(&drain->checkpoints, "%s", why);
	for (uint32_t i = 0; i < drain->n_targets; i++)
		drain->targets[i]->is_frozen = true;
	/* Pairs with the acquire in torsh_drain_must_end. */
	atomic_store_explicit(&drain->is_memory_short, true, memory_order_release);
	torsh_mailbox_notify(&drain->mailbox);
}

static void *run(void *argument)
{
	struct drain *drain = argument;
	int stop;

	for (;;) {
		/* Read before everything else: later changes increment it and end the rest. */
		uint32_t seen =
			atomic_load_explicit(&drain->mailbox.wake_word, memory_order_acquire);
		struct target_pass pass;
		uint64_t now = torsh_clock_monotonic_ns();

		stop = atomic_load_explicit(&drain->stop, memory_order_acquire);
		torsh_drain_take_targets(drain);
		torsh_drain_take_requests(drain);
		torsh_drain_send_exit_reply(drain);
		torsh_file_calls_answer(&drain->file_calls, drain->targets, drain->n_targets);
		torsh_session_measure_if_due(&drain->session, now, drain->targets,
					     drain->n_targets);
		pass = drain_all(drain);
		check_memory(drain, now);
		poll_keeps(drain, now);
		torsh_session_peak_settle(&drain->session_peak, drain->targets, drain->n_targets);
		if (torsh_requests_is_due(&drain->requests, drain->targets, drain->n_targets))
			torsh_drain_answer(drain);
		if (stop != DRAIN_RUNS && !drain->n_targets)
			break;
		if (drain->session.has_begun && now >= drain->checkpoints.next_checkpoint_ns)
			checkpoint(drain, now);
		torsh_pace_rest(&drain->pace, &pass, seen,
				drain->requests.current != NULL || drain->is_judging,
				drain->targets, drain->n_targets);
	}
	end_recording(drain, stop == DRAIN_STOPS_COMPLETE);
	return NULL;
}

/* ---- start and end --------------------------------------------------------------------------- */

static void destroy_parts(struct drain *drain)
{
	torsh_file_calls_destroy(&drain->file_calls);
	torsh_keeps_destroy(&drain->keeps);
	if (drain->to_judge)
		torsh_queued_request_destroy(drain->to_judge);
	torsh_status_reader_stop(drain->status_reader);
	torsh_clock_probes_destroy(drain->clocks);
	torsh_requests_destroy(&drain->requests);
	torsh_pending_children_destroy(&drain->pending_children);
	torsh_mailbox_destroy(&drain->mailbox);
	torsh_memory_limit_close(&drain->memory_limit);
	torsh_clock_rate_destroy(&drain->session.rate);
	torsh_book_destroy(drain->book);
}

struct drain *torsh_drain_start(const struct drain_options *options)
{
	struct drain *drain = torsh_memory_new(1, sizeof(*drain));

	drain->options = *options;
	drain->session.recording_path = options->recording_path;
	drain->session.record = options->record;
	drain->session.without_flops = options->without_flops;
	drain->pace.wake_word = &drain->mailbox.wake_word;
	drain->book = torsh_book_create();
	drain->out_of_memory = (struct out_of_memory){.recording = options->recording_path,
						      .limits = options->limits};
	drain->file_calls = (struct file_calls){.recording_path = options->recording_path,
						.socket_path = options->socket_path,
						.mailbox = &drain->mailbox};
	torsh_mailbox_create(&drain->mailbox, options->done_fd);
	drain->keeps = (struct keeps){.recording_path = options->recording_path,
				      .limits = options->keep,
				      .is_on = options->flight.unit != FLIGHT_OFF};
	if (*options->keep_with)
		drain->keeps.peers = torsh_keep_peers_start(options->keep_with, &drain->mailbox);
	torsh_requests_create(&drain->requests, options->answer_fd);
	torsh_pending_children_create(&drain->pending_children);
	torsh_clock_rate_start(&drain->session.rate);
	torsh_memory_limit_open(&drain->memory_limit, "");
	drain->status_reader = torsh_status_reader_start();
	if (drain->status_reader &&
	    !torsh_checkpoints_open(&drain->checkpoints, options->recording_fd, &options->limits,
				    &options->flight, options->is_full, options->checkpoint_ns) &&
	    !pthread_create(&drain->thread, NULL, run, drain))
		return drain;
	destroy_parts(drain);
	free(drain);
	return NULL;
}

void torsh_drain_stop(struct drain *drain, bool is_complete)
{
	atomic_store_explicit(&drain->stop, is_complete ? DRAIN_STOPS_COMPLETE : DRAIN_STOPS,
			      memory_order_release);
	torsh_mailbox_wake(&drain->mailbox);
	pthread_join(drain->thread, NULL);
}

const struct summary *torsh_drain_summary(const struct drain *drain)
{
	return &drain->summary;
}

const char *torsh_drain_stopped_why(const struct drain *drain)
{
	return drain->checkpoints.n_reasons ? drain->checkpoints.reasons[0] : NULL;
}

void torsh_drain_destroy(struct drain *drain)
{
	torsh_checkpoints_destroy(&drain->checkpoints);
	destroy_parts(drain);
	torsh_session_peak_destroy(&drain->session_peak);
	torsh_fork_ancestry_destroy(&drain->ancestry);
	torsh_summary_destroy(&drain->summary);
	free(drain->targets);
	torsh_program_tables_set_destroy(&drain->tables);
	free(drain);
}
