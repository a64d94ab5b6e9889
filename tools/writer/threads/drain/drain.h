/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The drain thread: it takes events from the targets' rings, folds them, writes checkpoints and,
 * for each target that has ended, its final rows. It owns the targets and the recording. The
 * control thread hands over new targets and the fate of existing ones through these functions,
 * which any thread may call unless noted.
 *
 * drain.c has these functions and the loop, drain_targets.c the begin and end of a target,
 * drain_requests.c the answers to clients and to the exiting first process, drain_clocks.c what is
 * learned of other hosts' clocks.
 */
#ifndef TORSH_WRITER_THREADS_DRAIN_DRAIN_H
#define TORSH_WRITER_THREADS_DRAIN_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/store/recording_write.h"
#include "tools/writer/input/target.h"
#include "tools/writer/input/unfollowed.h"
#include "tools/writer/output/flight.h"
#include "tools/writer/output/summary.h"
#include "tools/writer/threads/keep/keeps.h"
#include "tools/writer/threads/request_queue.h"

struct drain_options {
	int recording_fd; /* stays the caller's */
	const char *recording_path; /* sent with snapshots */
	const char *socket_path; /* at which the writer listens */
	struct recording_limits limits;
	const char *record; /* how much is kept, as in rows_session */
	bool is_full; /* keep every event */
	struct flight_limit flight; /* of the timeline */
	struct keep_limits keep; /* when a copy is kept of a flight recorder */
	const char *keep_with; /* the directory in which ranks meet for that; "": none */
	uint64_t checkpoint_ns; /* between checkpoints */
	bool without_flops; /* reports of the recording contain none */
	const char *clock_peers, *clock_key; /* as in clock_probes_options */
	pid_t first_pid; /* of the process that began the session; 0: unknown */
	uint32_t exit_wishes; /* bits of channel_exit_wish, for that process */
	int done_fd; /* an eventfd, written to when the control thread has something to do */
	int answer_fd; /* an eventfd, written to when a request is answered */
};

struct drain;

/* Begin the recording and start the thread. Returns NULL on failure. */
struct drain *torsh_drain_start(const struct drain_options *options);

/* Hand over a target; the drain owns it from then on. */
void torsh_drain_add(struct drain *drain, struct target *target);

/* Set the target's fate; the target may be freed when this returns. */
void torsh_drain_set_fate(struct drain *drain, struct target *target, enum target_fate fate);

/*
 * Returns an unfollowed process to watch from now on, or NULL; done_fd is written to when there is
 * one.
 */
struct unfollowed *torsh_drain_take_unfollowed(struct drain *drain);

/* Set its fate; it may be freed when this returns. */
void torsh_drain_set_unfollowed_fate(struct drain *drain, struct unfollowed *unfollowed,
				     enum target_fate fate);

/*
 * Returns true if the writer must end because too little memory is left. done_fd is written to when
 * that becomes true.
 */
bool torsh_drain_must_end(struct drain *drain);

/* Number of targets that are finished so far. */
uint64_t torsh_drain_finished(struct drain *drain);

/* Returns the CPU time of the drain thread in nanoseconds; 0 if it cannot be read. */
uint64_t torsh_drain_cpu_ns(const struct drain *drain);

/*
 * Returns true if a finished process started others, so that one of them may be about to send its
 * hello.
 */
bool torsh_drain_had_children(struct drain *drain);

/*
 * Returns true if a child that a finished process forked is alive and has not sent its hello yet.
 */
bool torsh_drain_has_pending_child(struct drain *drain);

/* Returns true while a copy of the session is being written, which is a client for its while. */
bool torsh_drain_is_keeping(struct drain *drain);

/* Queue a request. Requests are answered in order. */
void torsh_drain_request(struct drain *drain, struct queued_request *queued);

/* Returns the next answered request, which the caller destroys, or NULL. */
struct queued_request *torsh_drain_take_answer(struct drain *drain);

/* Let the first process, which waits at its exit, print the text and continue. */
void torsh_drain_reply_to_exit(struct drain *drain, const char *text);

/* Returns true if the first process has taken that text. Only after torsh_drain_stop. */
bool torsh_drain_has_replied_to_exit(const struct drain *drain);

/*
 * Write the end and stop the thread; each target must have a fate. is_complete: all processes were
 * recorded to their end.
 */
void torsh_drain_stop(struct drain *drain, bool is_complete);

/* Returns the finished processes, which the drain owns. Only after torsh_drain_stop. */
const struct summary *torsh_drain_summary(const struct drain *drain);

/*
 * Returns the reason why the recording stopped early, or NULL; the drain owns it. Only after
 * torsh_drain_stop.
 */
const char *torsh_drain_stopped_why(const struct drain *drain);

/* Free it, after torsh_drain_stop. */
void torsh_drain_destroy(struct drain *drain);

#endif
