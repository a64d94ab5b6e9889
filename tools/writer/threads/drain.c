/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/drain.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/base/memory.h"
#include "tools/writer/budget/memory_limit.h"
#include "tools/writer/budget/shortage.h"
#include "tools/writer/fold/session_peak.h"
#include "tools/writer/input/fork_ancestry.h"
#include "tools/writer/input/order.h"
#include "tools/writer/input/pending_children.h"
#include "tools/writer/input/process_info.h"
#include "tools/writer/input/status_reader.h"
#include "tools/writer/output/checkpoints.h"
#include "tools/writer/output/rows/rows.h"
#include "tools/writer/output/summary.h"
#include "tools/writer/threads/farewell.h"
#include "tools/writer/threads/out_of_memory.h"
#include "tools/writer/threads/requests.h"
#include "tools/writer/threads/sleep.h"

#define BUDGET 32768u /* events folded between two looks at the rings */
#define ENDED_MANY 8u
#define SLEEP_BUSY_NS 500000u
#define SLEEP_FLOWING_NS 1000000u
#define SLEEP_IDLE_NS 5000000u
#define SLEEP_DEEP_NS 250000000u
#define IDLE_BEFORE_DEEP_NS 50000000u
#define MEASURE_EVERY_NS 100000000u
#define EVENTS_CHUNK (1u << 18)
#define ROOM_EVERY_NS 2000000u

struct drain {
	struct drain_options options;
	pthread_t thread;
	_Atomic uint32_t mail; /* moves when the control thread did something */
	_Atomic uint64_t n_finished;
	_Atomic int had_children; /* stored before n_finished moves */
	_Atomic int has_no_room; /* too little memory is left: the writer ends */
	_Atomic int must_stop; /* 0; 1 stop, 2 stop and all was complete */
	struct status_reader *status_reader;
	struct requests requests; /* its jobs: any thread's, its rest is below */
	struct pending_children awaited;

	pthread_mutex_t lock; /* guards what follows */
	struct target **incoming;
	uint32_t n_incoming, incoming_capacity;
	struct unfollowed **unwatched; /* for the control thread to take */
	uint32_t n_unwatched, unwatched_capacity;
	char *farewell; /* for the first process to print; NULL: not yet */

	/* The thread's own. */
	struct checkpoints checkpoints;
	struct symbol_book *book;
	struct ticks_rate rate;
	uint64_t session_monotonic_ns; /* the zero of all times */
	uint64_t session_realtime_ns; /* the same moment */
	int has_session;
	bool ends_with_process_1; /* the session's first process is that of our PID namespace */
	struct fork_ancestry ancestry;
	struct session_peak session_peak;
	struct unfollowed_list unfollowed_list;
	struct out_of_memory out_of_memory;
	struct target **targets;
	uint32_t n_targets, target_capacity;
	struct memory_limit room;
	struct shortage shortage;
	uint64_t last_active_ns, last_measure_ns, next_watch_ns, next_room_ns;
	/* number of the first process, once it waits at its exit; 0: it doesn't */
	uint32_t leaving;
	int has_said_farewell;
	struct drain_summary *summaries;
	uint32_t n_summaries, summary_capacity;
};

static uint64_t now_ns(void)
{
	return torsh_ticks_monotonic_ns();
}

static uint64_t session_ns(const struct drain *drain, uint64_t monotonic_ns)
{
	return monotonic_ns > drain->session_monotonic_ns
		       ? monotonic_ns - drain->session_monotonic_ns
		       : 0;
}

/* ---- called by the control thread ------------------------------------------------------------ */

void torsh_drain_add(struct drain *drain, struct target *target)
{
	torsh_status_reader_add(drain->status_reader, target);
	pthread_mutex_lock(&drain->lock);
	drain->incoming = torsh_memory_grow(drain->incoming, &drain->incoming_capacity,
					    drain->n_incoming, sizeof(*drain->incoming));
	drain->incoming[drain->n_incoming++] = target;
	pthread_mutex_unlock(&drain->lock);
	torsh_sleep_wake(&drain->mail);
}

void torsh_drain_tell(struct drain *drain, struct target *target, enum target_fate fate)
{
	target->end_monotonic_ns = now_ns();
	/* Pairs with the acquire in torsh_target_drain: from then on its rings stand still. */
	atomic_store_explicit(&target->fate, fate, memory_order_release);
	torsh_sleep_wake(&drain->mail);
}

struct unfollowed *torsh_drain_take_unfollowed(struct drain *drain)
{
	struct unfollowed *unfollowed = NULL;

	pthread_mutex_lock(&drain->lock);
	if (drain->n_unwatched)
		unfollowed = drain->unwatched[--drain->n_unwatched];
	pthread_mutex_unlock(&drain->lock);
	return unfollowed;
}

void torsh_drain_note_unfollowed(struct drain *drain, struct unfollowed *unfollowed,
				 enum target_fate fate)
{
	int status;

	unfollowed->end_monotonic_ns = now_ns();
	if (fate == TARGET_DIED &&
	    !torsh_process_wait_status(unfollowed->pidfd, unfollowed->stat_fd, &status))
		unfollowed->wait_status = status;
	/* Pairs with the acquire in torsh_unfollowed_write. */
	atomic_store_explicit(&unfollowed->fate, fate, memory_order_release);
	torsh_sleep_wake(&drain->mail);
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

int torsh_drain_must_end(struct drain *drain)
{
	return atomic_load_explicit(&drain->has_no_room, memory_order_acquire);
}

int torsh_drain_had_children(struct drain *drain)
{
	return atomic_load_explicit(&drain->had_children, memory_order_acquire);
}

int torsh_drain_awaits_child(struct drain *drain)
{
	return torsh_pending_children_any(&drain->awaited, now_ns());
}

void torsh_drain_ask(struct drain *drain, struct queued_request *job)
{
	torsh_request_queue_put(&drain->requests.jobs, job);
	torsh_sleep_wake(&drain->mail);
}

struct queued_request *torsh_drain_answered(struct drain *drain)
{
	return torsh_request_queue_answered(&drain->requests.jobs);
}

void torsh_drain_answer_farewell(struct drain *drain, const char *text)
{
	pthread_mutex_lock(&drain->lock);
	free(drain->farewell);
	drain->farewell = torsh_memory_text(text);
	pthread_mutex_unlock(&drain->lock);
	torsh_sleep_wake(&drain->mail);
}

int torsh_drain_has_said_farewell(const struct drain *drain)
{
	return drain->has_said_farewell;
}

/* ---- the recording --------------------------------------------------------------------------- */

/* Session time up to which everything is folded. */
static uint64_t known_ns(const struct drain *drain, uint64_t now)
{
	uint64_t known = session_ns(drain, now);

	for (uint32_t i = 0; i < drain->n_targets; i++) {
		const struct target *target = drain->targets[i];
		uint64_t bound = torsh_target_bound(target);
		uint64_t own = bound == ORDER_NO_BOUND
				       ? known
				       : torsh_ticks_to_ns(&target->process_state.clock, bound);

		known = own < known ? own : known;
	}
	return known;
}

static void checkpoint(struct drain *drain, uint64_t now)
{
	struct recording_file *file = drain->checkpoints.file;
	uint64_t known = known_ns(drain, now);

	torsh_cost_look(&drain->checkpoints.cost, drain->targets, drain->n_targets);
	for (uint32_t i = 0; i < drain->n_targets; i++)
		torsh_checkpoints_write(&drain->checkpoints, drain->targets[i]);
	if (drain->ancestry.n > 1)
		torsh_session_peak_checkpoint(&drain->session_peak, file);
	torsh_unfollowed_write(&drain->unfollowed_list, &drain->ancestry, file);
	torsh_checkpoints_poll(&drain->checkpoints);
	torsh_checkpoints_end(&drain->checkpoints, now, known);
}

/* ---- targets come and go --------------------------------------------------------------------- */

static void write_session(const struct drain *drain)
{
	struct rows_session session = {
		.start_realtime_ns = drain->session_realtime_ns,
		.is_full = drain->options.is_full,
		.without_flops = drain->options.without_flops,
		.ends_with_process_1 = drain->ends_with_process_1,
	};

	torsh_pauses_put(&drain->requests.pauses, drain->session_monotonic_ns, &session);
	torsh_rows_session(drain->checkpoints.file, &session);
	torsh_pauses_release(&session);
}

/* The first target's start is the zero, where it can be believed: it was a moment ago. */
static void begin_session(struct drain *drain, const struct target *target)
{
	uint64_t now = now_ns(), start = target->start.start_monotonic_ns;
	struct timespec real;

	drain->session_monotonic_ns =
		start <= now && now - start < UINT64_C(60000000000) ? start : now;
	clock_gettime(CLOCK_REALTIME, &real);
	drain->session_realtime_ns = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec -
				     (now - drain->session_monotonic_ns);
	drain->ends_with_process_1 = target->pid == 1;
	write_session(drain);
	drain->unfollowed_list.zero_ns = drain->session_monotonic_ns;
	drain->has_session = 1;
}

static struct target *find_process(const struct drain *drain, uint32_t pid,
				   const struct target *but)
{
	for (uint32_t i = drain->n_targets; i-- > 0;) {
		if (drain->targets[i]->start.pid == pid && drain->targets[i] != but)
			return drain->targets[i];
	}
	return NULL;
}

/* Say in reports what happened to the counter. */
static void note_jump(const struct drain *drain, const struct ticks_reading *reading)
{
	const char *what = reading->jump == TICKS_SET_BACK ? "was set back" : "jumped ahead";

	for (uint32_t i = 0; i < drain->n_targets; i++) {
		struct process_state *process_state = &drain->targets[i]->process_state;

		if (!process_state->clock.rate)
			continue;
		if (reading->suspended_ns)
			torsh_process_state_note(
				process_state,
				"the processor's counter %s when the machine was suspended, for %.1f s, which the "
				"times leave out; those of events right after it may be some milliseconds off",
				what, (double)reading->suspended_ns / 1e9);
		else
			torsh_process_state_note(
				process_state,
				"the processor's counter %s, as when a virtual machine moves; times of "
				"events right after that may be some milliseconds off",
				what);
	}
}

static void measure_ticks(struct drain *drain)
{
	struct ticks_reading reading = torsh_ticks_measure(&drain->rate);

	if (reading.jump != TICKS_STEADY)
		note_jump(drain, &reading);
	for (uint32_t i = 0; i < drain->n_targets; i++) {
		struct target *target = drain->targets[i];

		if (target->process_state.clock.rate)
			torsh_ticks_publish(&drain->rate, target->process_state.clock.base,
					    &target->view.header->clock_reference);
	}
}

static void begin_target(struct drain *drain, struct target *target)
{
	struct channel_header *header = target->view.header;
	bool is_first = !drain->has_session;
	struct clock_conversion clock = {
		.rate = target->start.clock == CHANNEL_CLOCK_TSC ? &drain->rate : NULL,
		.start_ticks = target->start.start_ticks,
		.lift = &header->clock_lift,
	};

	if (is_first)
		begin_session(drain, target);
	clock.start_ns = session_ns(drain, target->start.start_monotonic_ns);
	clock.start_monotonic_ns = target->start.start_monotonic_ns;
	measure_ticks(drain);
	clock.base = drain->rate.lift;
	torsh_target_begin(target, &clock);
	torsh_fork_ancestry_begin(&drain->ancestry, target);
	if (target->is_clock_foreign)
		torsh_process_state_note(
			&target->process_state,
			"its clock is ahead of the writer's: events of different threads were "
			"ordered only as they came");
	torsh_requests_join(&drain->requests, target);
	if (drain->options.is_full) {
		target->process_state.columns = torsh_columns_create();
		target->process_state.columns_failed = target->process_state.columns ? 0 : -ENOMEM;
	}
	torsh_session_peak_join(&drain->session_peak, target, drain->targets, drain->n_targets);
	drain->targets = torsh_memory_grow(drain->targets, &drain->target_capacity,
					   drain->n_targets, sizeof(*drain->targets));
	drain->targets[drain->n_targets++] = target;
	torsh_pending_children_forget(&drain->awaited, target->pid);
	torsh_pending_children_forget(&drain->awaited, (pid_t)target->start.pid);
	torsh_rows_process(drain->checkpoints.file, target);
	if (target->pid == drain->options.first_pid)
		torsh_farewell_promise(target, drain->options.farewell);
	/* Nothing of what the first process did is known yet, but that it began. */
	if (is_first)
		torsh_checkpoints_end(&drain->checkpoints, now_ns(), 0);
	torsh_view_attach(&target->view);
}

static void take_incoming(struct drain *drain)
{
	struct target **incoming;
	uint32_t n;

	pthread_mutex_lock(&drain->lock);
	incoming = drain->incoming;
	n = drain->n_incoming;
	drain->incoming = NULL;
	drain->n_incoming = drain->incoming_capacity = 0;
	pthread_mutex_unlock(&drain->lock);
	for (uint32_t i = 0; i < n; i++)
		begin_target(drain, incoming[i]);
	if (n)
		drain->last_active_ns = now_ns();
	free(incoming);
}

static uint64_t count_of(const struct target *target, enum channel_counter counter)
{
	return atomic_load_explicit(&target->view.header->counters[counter], memory_order_relaxed);
}

static int has_children(const struct target *target)
{
	return target->process_state.n_forks ||
	       torsh_process_state_is_executing(&target->process_state) ||
	       count_of(target, COUNTER_followed_children);
}

/* Children that were forked and said nothing yet may be about to. */
static void await_children(struct drain *drain, const struct target *target, uint64_t now)
{
	for (uint32_t i = 0; i < target->process_state.n_forks; i++) {
		pid_t pid = (pid_t)target->process_state.forks[i].child;

		if (!find_process(drain, (uint32_t)pid, target))
			torsh_pending_children_add(&drain->awaited, pid, now);
	}
}

static struct drain_summary summary_of(const struct target *target)
{
	struct target_counts counts = torsh_target_counts(target);
	/* The sum may stand at its record right now. */
	int is_at_peak = target->process_state.heap.tracker.bytes >
			 target->process_state.heap.tracker.peak_bytes;
	const struct peak_tracker *tracker = &target->process_state.heap.tracker;
	struct drain_summary summary;
	size_t n;
	char *program = torsh_view_text(&target->view, target->start.program, -1, &n);
	const char *slash = strrchr(program, '/');

	summary = (struct drain_summary){
		.pid = (uint32_t)target->pid,
		.n_events = counts.produced,
		.n_dropped = counts.dropped,
		.peak_bytes = is_at_peak ? tracker->bytes : tracker->peak_bytes,
		.peak_ns = torsh_ticks_to_ns(&target->process_state.clock,
					     is_at_peak ? target->process_state.last_stamp
							: tracker->peak_stamp) -
			   target->process_state.clock.start_ns,
		.live_bytes = tracker->bytes,
		.live_blocks = tracker->n,
		.has_heap = counts.delivered && !count_of(target, COUNTER_heap_left_out),
		.is_lossy = torsh_target_is_lossy(target),
		.ended_with_exit =
			target->process_state.has_exited &&
			target->process_state.exit_stamp == target->process_state.last_stamp,
	};
	snprintf(summary.program, sizeof(summary.program), "%s", slash ? slash + 1 : program);
	free(program);
	return summary;
}

static void add_summary(struct drain *drain, const struct target *target)
{
	drain->summaries = torsh_memory_grow(drain->summaries, &drain->summary_capacity,
					     drain->n_summaries, sizeof(*drain->summaries));
	drain->summaries[drain->n_summaries++] = summary_of(target);
}

static void ring_done(struct drain *drain)
{
	if (write(drain->options.done_fd, &(uint64_t){1}, sizeof(uint64_t)) < 0)
		fprintf(stderr, "torsh: the writer can't tell itself that something is done: %s\n",
			strerror(errno));
}

/* Called by torsh_unfollowed_take. */
static void hand_out(void *context, struct unfollowed *unfollowed)
{
	struct drain *drain = context;

	pthread_mutex_lock(&drain->lock);
	drain->unwatched = torsh_memory_grow(drain->unwatched, &drain->unwatched_capacity,
					     drain->n_unwatched, sizeof(*drain->unwatched));
	drain->unwatched[drain->n_unwatched++] = unfollowed;
	pthread_mutex_unlock(&drain->lock);
	ring_done(drain);
}

/* All is folded: its rows for good. */
static void finish_target(struct drain *drain, uint32_t i)
{
	struct target *target = drain->targets[i];
	int status;

	if (!torsh_process_wait_status(target->pidfd, target->stat_fd, &status))
		target->wait_status = status;
	target->end_ns = session_ns(drain, target->end_monotonic_ns);
	torsh_cost_look(&drain->checkpoints.cost, drain->targets, drain->n_targets);
	torsh_unfollowed_leave(&drain->unfollowed_list, target);
	measure_ticks(drain);
	torsh_checkpoints_events(&drain->checkpoints, target, 1);
	torsh_checkpoints_timeline(&drain->checkpoints, target, 1);
	torsh_rows_target(drain->checkpoints.file, target, RECORDING_LAST);
	torsh_rows_symbols(drain->checkpoints.file, target, drain->book);
	torsh_checkpoints_poll(&drain->checkpoints);
	add_summary(drain, target);
	torsh_session_peak_leave(target);
	await_children(drain, target, now_ns());
	if (has_children(target))
		atomic_store_explicit(&drain->had_children, 1, memory_order_release);
	atomic_store_explicit(&target->view.header->writer_state, CHANNEL_WRITER_CLOSED,
			      memory_order_release);
	torsh_fork_ancestry_end(&drain->ancestry, target);
	torsh_status_reader_remove(drain->status_reader, target);
	drain->targets[i] = drain->targets[--drain->n_targets];
	torsh_target_destroy(target);
	/* Pairs with the acquire in torsh_drain_finished. */
	atomic_fetch_add_explicit(&drain->n_finished, 1, memory_order_release);
	ring_done(drain);
}

/*
 * A parent says a little later than its child began that it forked: not for long, it may be
 * stopped.
 */
static int awaits_parent(const struct target *target, uint64_t now)
{
	return torsh_fork_ancestry_is_awaited(target) &&
	       now < target->end_monotonic_ns + FORK_TIMEOUT_NS;
}

/* ---- requests -------------------------------------------------------------------------------- */

static struct target *find_number(const struct drain *drain, uint32_t number)
{
	for (uint32_t i = 0; i < drain->n_targets; i++) {
		if (drain->targets[i]->number == number)
			return drain->targets[i];
	}
	return NULL;
}

/* Once a session: a process that waits is asked after no more. */
static void look_for_farewell(struct drain *drain, const struct target *target)
{
	const struct request none = {.verb = JOB_FAREWELL};

	if (drain->leaving || !torsh_farewell_is_asked(target))
		return;
	drain->leaving = target->number;
	torsh_drain_ask(drain, torsh_job_create(&none, NULL));
}

static void say_farewell(struct drain *drain)
{
	struct target *leaving;
	char *text;

	pthread_mutex_lock(&drain->lock);
	text = drain->farewell;
	drain->farewell = NULL;
	pthread_mutex_unlock(&drain->lock);
	leaving = text ? find_number(drain, drain->leaving) : NULL;
	if (leaving && !torsh_process_has_ended(leaving->pidfd)) {
		torsh_farewell_answer(leaving, text);
		drain->has_said_farewell = 1;
	}
	free(text);
}

static void take_requests(struct drain *drain)
{
	struct queued_request *job;

	while ((job = torsh_requests_next(&drain->requests))) {
		/* Who said hello before somebody asked is there. */
		take_incoming(drain);
		if (torsh_requests_take(&drain->requests, job, drain->targets, drain->n_targets) &&
		    drain->has_session)
			write_session(drain);
	}
}

static struct rows_session session_of_snapshot(const struct drain *drain, uint64_t taken_ns)
{
	return (struct rows_session){
		.start_realtime_ns = drain->session_realtime_ns,
		.is_full = drain->options.is_full,
		.without_flops = drain->options.without_flops,
		.recording = drain->options.recording_path,
		.taken_ns = taken_ns,
	};
}

static void keep_out_of_memory(struct drain *drain, struct target *target)
{
	const struct process_state *process_state = &target->process_state;
	uint64_t at_ns =
		torsh_ticks_to_ns(&process_state->clock, process_state->out_of_memory.stamp);
	struct rows_session session = session_of_snapshot(drain, at_ns);

	torsh_pauses_put(&drain->requests.pauses, drain->session_monotonic_ns, &session);
	torsh_out_of_memory_keep(&drain->out_of_memory, target, &session);
	torsh_pauses_release(&session);
}

/* The recording as it would be if the session ended now: what comes later is written behind it. */
static void write_whole(struct drain *drain)
{
	static char why[] =
		"the writer ends with its PID namespace, of which process 1 may have ended now: of other "
		"processes that ran then, the end is not known";
	char *reasons[] = {why};
	uint64_t at_ns = session_ns(drain, now_ns());
	const struct rows_end end = {
		.is_complete = drain->n_targets == 1,
		.at_ns = at_ns,
		.reasons = reasons,
		.n_reasons = drain->n_targets > 1,
		.cost = &drain->checkpoints.cost,
	};

	torsh_cost_look(&drain->checkpoints.cost, drain->targets, drain->n_targets);
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

/* What the summary says as of now, with the process that leaves; the caller's. */
static char *make_summary(struct drain *drain, const struct target *leaving)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		return NULL;
	add_summary(drain, leaving);
	torsh_summary_print(out, drain, drain->options.recording_path);
	drain->n_summaries--;
	fclose(out);
	return text;
}

/* The first process waits at its exit, and all that it committed before is folded. */
static void prepare_farewell(struct drain *drain)
{
	struct queued_request *job = drain->requests.job;
	struct target *leaving = find_number(drain, drain->leaving);

	if (leaving && drain->options.farewell & EXIT_SUMMARY)
		job->text = make_summary(drain, leaving);
	if (leaving && drain->options.farewell & EXIT_WHOLE)
		write_whole(drain);
	torsh_requests_done(&drain->requests, drain->targets, drain->n_targets);
}

static void answer_request(struct drain *drain)
{
	const struct ticks_moment *moment = &drain->requests.moment;
	struct snapshot snapshot = {
		.targets = drain->targets,
		.n_targets = drain->n_targets,
		.session_heap = drain->ancestry.n > 1 ? &drain->session_peak.session_heap : NULL,
		.joint_clock = &drain->session_peak.clock,
	};

	snapshot.session =
		session_of_snapshot(drain, drain->has_session ? session_ns(drain, moment->ns) : 0);
	/*
	 * Who said hello before the request did so before we heard that: nobody else has anything
	 * from before.
	 */
	if (snapshot.session_heap)
		torsh_session_heap_settle(snapshot.session_heap,
					  torsh_ticks_stamp(&drain->session_peak.clock, moment) +
						  1);
	torsh_pauses_put(&drain->requests.pauses, drain->session_monotonic_ns, &snapshot.session);
	/*
	 * The timeline is no part of what is made aside: up to the moment it goes to the recording.
	 */
	for (uint32_t i = 0; torsh_requests_is_whole(&drain->requests) && i < drain->n_targets; i++)
		torsh_checkpoints_timeline(&drain->checkpoints, drain->targets[i], 1);
	torsh_requests_answer(&drain->requests, &snapshot, drain->options.recording_fd,
			      torsh_recording_written(drain->checkpoints.file));
	torsh_pauses_release(&snapshot.session);
}

static void answer_due(struct drain *drain)
{
	if (drain->requests.job->request.verb == JOB_FAREWELL)
		prepare_farewell(drain);
	else
		answer_request(drain);
	/* The next one may be there already. */
	torsh_sleep_wake(&drain->mail);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static struct target_pass drain_all(struct drain *drain)
{
	struct target_pass sum = {0};
	uint64_t now = now_ns();

	drain->next_watch_ns = now + SLEEP_DEEP_NS;
	for (uint32_t i = drain->n_targets; i-- > 0;) {
		struct target *target = drain->targets[i];
		struct target_pass pass = {0};
		uint64_t next_watch_ns = torsh_target_watch(target, now);

		atomic_fetch_add_explicit(&target->view.header->heartbeat, 1, memory_order_relaxed);
		if (next_watch_ns < drain->next_watch_ns)
			drain->next_watch_ns = next_watch_ns;
		torsh_fork_ancestry_inherit(&drain->ancestry, target);
		if (!target->is_drained)
			pass = torsh_target_drain(target, now, BUDGET);
		if (target->process_state.is_out_of_memory)
			keep_out_of_memory(drain, target);
		sum.n_copied += pass.n_copied;
		sum.n_folded += pass.n_folded;
		sum.n_ended += pass.n_ended;
		if (pass.fill_percent > sum.fill_percent)
			sum.fill_percent = pass.fill_percent;
		torsh_checkpoints_events(&drain->checkpoints, target, EVENTS_CHUNK);
		torsh_checkpoints_timeline(&drain->checkpoints, target, EVENTS_CHUNK);
		torsh_unfollowed_take(&drain->unfollowed_list, target, hand_out, drain);
		look_for_farewell(drain, target);
		if (target->is_drained && !awaits_parent(target, now))
			finish_target(drain, i);
	}
	return sum;
}

static int has_bytes(const struct drain *drain)
{
	for (uint32_t i = 0; i < drain->n_targets; i++) {
		if (torsh_target_has_bytes(drain->targets[i]))
			return 1;
	}
	return 0;
}

static void set_sleeping(struct drain *drain, uint32_t value)
{
	for (uint32_t i = 0; i < drain->n_targets; i++)
		atomic_store_explicit(&drain->targets[i]->view.header->writer_sleeps, value,
				      memory_order_seq_cst);
}

/*
 * Until a producer's ring is a quarter full, or something else happened, or memory is to be read.
 */
static void sleep_deeply(struct drain *drain, uint32_t seen, uint64_t now)
{
	struct sleep_word words[SLEEP_WORDS_MAX];
	uint32_t n = drain->n_targets;
	uint64_t at_most_ns = drain->next_watch_ns > now ? drain->next_watch_ns - now : 1;

	if (n > SLEEP_WORDS_MAX) {
		torsh_sleep_lightly(&drain->mail, seen, SLEEP_IDLE_NS);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		words[i] = (struct sleep_word){&drain->targets[i]->view.header->writer_sleeps, 1};
	set_sleeping(drain, 1);
	/*
	 * A producer publishes, then looks at writer_sleeps; we the other way round: one of us sees
	 * the other.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (has_bytes(drain) || torsh_sleep_deeply(&drain->mail, seen, words, n, at_most_ns))
		torsh_sleep_lightly(&drain->mail, seen, SLEEP_FLOWING_NS);
	set_sleeping(drain, 0);
}

static void rest(struct drain *drain, const struct target_pass *pass, uint32_t seen)
{
	uint64_t now = now_ns();

	if (pass->n_copied || pass->n_folded)
		drain->last_active_ns = now;
	/* Where threads come and go that fast, the next ones will need the slots. */
	if (pass->n_folded >= BUDGET || pass->fill_percent > 40 || pass->n_ended >= ENDED_MANY)
		return;
	if (drain->requests.job) {
		torsh_sleep_lightly(&drain->mail, seen, ORDER_SLACK_NS);
		return;
	}
	if (pass->fill_percent > 10)
		torsh_sleep_lightly(&drain->mail, seen, SLEEP_BUSY_NS);
	else if (now - drain->last_active_ns < SLEEP_IDLE_NS)
		torsh_sleep_lightly(&drain->mail, seen, SLEEP_FLOWING_NS);
	else if (now - drain->last_active_ns < IDLE_BEFORE_DEEP_NS)
		torsh_sleep_lightly(&drain->mail, seen, SLEEP_IDLE_NS);
	else
		sleep_deeply(drain, seen, now);
}

/*
 * Where the control group gets short of memory the writer takes less. Where the kernel is about to
 * kill somebody of it the writer ends: its memory is the program's then.
 */
static void look_for_room(struct drain *drain, uint64_t now)
{
	char why[CHECKPOINTS_REASON_BYTES];
	struct room_left left;

	if (now < drain->next_room_ns ||
	    atomic_load_explicit(&drain->has_no_room, memory_order_relaxed))
		return;
	drain->next_room_ns = now + ROOM_EVERY_NS;
	left = torsh_memory_limit_left(&drain->room);
	torsh_shortage_look(&drain->shortage, &left, drain->targets, drain->n_targets,
			    session_ns(drain, now));
	if (!torsh_memory_limit_is_short(&left, session_ns(drain, now), why, sizeof(why)))
		return;
	torsh_checkpoints_give_reason(&drain->checkpoints, "%s", why);
	for (uint32_t i = 0; i < drain->n_targets; i++)
		drain->targets[i]->takes_no_more = 1;
	/* Pairs with the acquire in torsh_drain_must_end. */
	atomic_store_explicit(&drain->has_no_room, 1, memory_order_release);
	ring_done(drain);
}

static void end_recording(struct drain *drain, int is_complete)
{
	struct recording_file *file = drain->checkpoints.file;

	if (drain->ancestry.n > 1)
		torsh_session_peak_end(&drain->session_peak, file);
	torsh_unfollowed_end(&drain->unfollowed_list, &drain->ancestry, file);
	torsh_checkpoints_close(&drain->checkpoints, is_complete,
				drain->has_session ? session_ns(drain, now_ns()) : 0);
}

static void *run(void *argument)
{
	struct drain *drain = argument;
	int must_stop = 0;

	for (;;) {
		/*
		 * Before anything is looked at: what comes later moves it, and there is no sleep.
		 */
		uint32_t seen = atomic_load_explicit(&drain->mail, memory_order_acquire);
		struct target_pass pass;
		uint64_t now = now_ns();

		must_stop = atomic_load_explicit(&drain->must_stop, memory_order_acquire);
		take_incoming(drain);
		take_requests(drain);
		say_farewell(drain);
		if (now - drain->last_measure_ns > MEASURE_EVERY_NS) {
			measure_ticks(drain);
			drain->last_measure_ns = now;
		}
		pass = drain_all(drain);
		look_for_room(drain, now);
		torsh_session_peak_settle(&drain->session_peak, drain->targets, drain->n_targets);
		if (torsh_requests_is_due(&drain->requests, drain->targets, drain->n_targets))
			answer_due(drain);
		if (must_stop && !drain->n_targets)
			break;
		if (drain->has_session && now >= drain->checkpoints.next_checkpoint_ns)
			checkpoint(drain, now);
		rest(drain, &pass, seen);
	}
	end_recording(drain, must_stop == 2);
	return NULL;
}

struct drain *torsh_drain_start(const struct drain_options *options)
{
	struct drain *drain = torsh_memory_new(1, sizeof(*drain));

	drain->options = *options;
	drain->book = torsh_book_create();
	drain->out_of_memory = (struct out_of_memory){.recording = options->recording_path,
						      .limits = options->limits};
	pthread_mutex_init(&drain->lock, NULL);
	torsh_requests_create(&drain->requests, options->answer_fd);
	torsh_pending_children_create(&drain->awaited);
	torsh_ticks_start(&drain->rate);
	torsh_memory_limit_open(&drain->room, "");
	drain->status_reader = torsh_status_reader_start();
	if (drain->status_reader &&
	    !torsh_checkpoints_open(&drain->checkpoints, options->recording_fd, &options->limits,
				    options->is_full, options->checkpoint_ns) &&
	    !pthread_create(&drain->thread, NULL, run, drain))
		return drain;
	torsh_status_reader_stop(drain->status_reader);
	torsh_requests_destroy(&drain->requests);
	torsh_pending_children_destroy(&drain->awaited);
	pthread_mutex_destroy(&drain->lock);
	torsh_memory_limit_close(&drain->room);
	torsh_ticks_destroy(&drain->rate);
	torsh_book_destroy(drain->book);
	free(drain);
	return NULL;
}

void torsh_drain_stop(struct drain *drain, int is_complete)
{
	atomic_store_explicit(&drain->must_stop, is_complete ? 2 : 1, memory_order_release);
	torsh_sleep_wake(&drain->mail);
	pthread_join(drain->thread, NULL);
}

const struct drain_summary *torsh_drain_summaries(const struct drain *drain, uint32_t *n)
{
	*n = drain->n_summaries;
	return drain->summaries;
}

const char *torsh_drain_stopped_why(const struct drain *drain)
{
	return drain->checkpoints.n_reasons ? drain->checkpoints.reasons[0] : NULL;
}

void torsh_drain_destroy(struct drain *drain)
{
	torsh_status_reader_stop(drain->status_reader);
	torsh_checkpoints_destroy(&drain->checkpoints);
	torsh_requests_destroy(&drain->requests);
	torsh_pending_children_destroy(&drain->awaited);
	pthread_mutex_destroy(&drain->lock);
	torsh_memory_limit_close(&drain->room);
	torsh_ticks_destroy(&drain->rate);
	torsh_book_destroy(drain->book);
	torsh_session_peak_destroy(&drain->session_peak);
	torsh_fork_ancestry_destroy(&drain->ancestry);
	free(drain->farewell);
	free(drain->summaries);
	free(drain->targets);
	free(drain->unwatched);
	free(drain->incoming);
	free(drain);
}
