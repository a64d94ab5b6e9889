/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The thread that does the work: takes what the targets' rings have, folds it, writes checkpoints
 * and, for each target that has ended, its final rows. It owns the targets and the recording; the
 * control thread hands over new targets and the fate of known ones through the functions here,
 * which any thread may call.
 */
#ifndef TORSH_WRITER_THREADS_DRAIN_H
#define TORSH_WRITER_THREADS_DRAIN_H

#include <stdint.h>

#include "tools/store/recording_write.h"
#include "tools/writer/input/target.h"
#include "tools/writer/input/unfollowed.h"
#include "tools/writer/threads/request_queue.h"

struct drain_options {
	int recording_fd; /* stays the caller's */
	const char *recording_path; /* said to who asks */
	struct recording_limits limits;
	int is_full; /* keep every event */
	uint64_t checkpoint_ns; /* between checkpoints */
	int without_flops; /* reports of the recording compute none */
	pid_t first_pid; /* of the process that began the session; 0: not known */
	uint32_t farewell; /* bits of channel_exit_wish, for that process */
	/*
	 * an eventfd: written to whenever there is something for the control thread to take or to
	 * know
	 */
	int done_fd;
	int answer_fd; /* the same whenever a job is answered */
};

/* What is said of a finished process on stderr. */
struct drain_summary {
	char program[64];
	uint32_t pid;
	uint64_t n_events, n_dropped;
	uint64_t peak_bytes, peak_ns; /* since the process's start */
	uint64_t live_bytes, live_blocks;
	int has_heap; /* it was recorded: otherwise the four before are 0 */
	/* its recording lacks something: torsh_target_losses, or a count of the agent's */
	int is_lossy;
	int ended_with_exit; /* after its exit it did nothing that was recorded */
};

struct drain;

/* Begins the recording and starts the thread. Returns NULL when that can't be. */
struct drain *torsh_drain_start(const struct drain_options *options);

/* Hand a target over. */
void torsh_drain_add(struct drain *drain, struct target *target);

/*
 * Is there so little memory left that the writer has to end? done_fd is written to when that is so.
 */
int torsh_drain_must_end(struct drain *drain);

/* Tell what became of a target; it may be gone when this returns. */
void torsh_drain_tell(struct drain *drain, struct target *target, enum target_fate fate);

/*
 * A unfollowed process to be watched from now on, or NULL. done_fd is written to when there is one.
 */
struct unfollowed *torsh_drain_take_unfollowed(struct drain *drain);

/* Tell what became of it; it may be gone when this returns. */
void torsh_drain_note_unfollowed(struct drain *drain, struct unfollowed *unfollowed,
				 enum target_fate fate);

/* Targets that are finished so far. */
uint64_t torsh_drain_finished(struct drain *drain);

/* CPU time of the thread that drains. */
uint64_t torsh_drain_cpu_ns(const struct drain *drain);

/* Did a finished process start others, so that one may be on its way to say hello? */
int torsh_drain_had_children(struct drain *drain);

/* Is a child that a finished process forked perhaps still on its way to say hello? */
int torsh_drain_awaits_child(struct drain *drain);

/*
 * Hand a job over; the next one that was answered, or NULL: those that were asked are answered in
 * their order.
 */
void torsh_drain_ask(struct drain *drain, struct queued_request *job);
struct queued_request *torsh_drain_answered(struct drain *drain);

/* What the first process, which waits at its exit, is to print; afterwards it goes on. */
void torsh_drain_answer_farewell(struct drain *drain, const char *text);

/* Did it take that? After torsh_drain_stop. */
int torsh_drain_has_said_farewell(const struct drain *drain);

/* All targets are finished: write the end and stop the thread. */
void torsh_drain_stop(struct drain *drain, int is_complete);

/*
 * After torsh_drain_stop: the summaries of all processes, and why the recording stopped early
 * (NULL: it didn't).
 */
const struct drain_summary *torsh_drain_summaries(const struct drain *drain, uint32_t *n);
const char *torsh_drain_stopped_why(const struct drain *drain);

void torsh_drain_destroy(struct drain *drain);

#endif
