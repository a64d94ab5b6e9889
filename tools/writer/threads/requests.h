/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Requests answered, one after the other. A pause turns at once. For a status or a snapshot all targets are held at its
 * moment: what was stamped before it is in the answer, nothing younger. Owned by the drain thread, but for its jobs.
 */
#ifndef TORSH_WRITER_ATTEND_H
#define TORSH_WRITER_ATTEND_H

#include "tools/writer/fold/pauses.h"
#include "tools/writer/threads/request_queue.h"
#include "tools/writer/threads/snapshot.h"

struct attendance {
	struct jobs jobs;
	struct job *job; /* that waits until all targets are at its moment, or NULL */
	struct ticks_moment moment;
	struct pauses pauses;
};

void torsh_attend_create(struct attendance *attendance, int answer_fd);
void torsh_attend_destroy(struct attendance *attendance);

/* The next job, NULL while one waits. The targets of torsh_attend_take are those that are there after this. */
struct job *torsh_attend_next(struct attendance *attendance);

/* Take a job up. Returns 1 when a pause began or ended with it. */
int torsh_attend_take(struct attendance *attendance, struct job *job, struct target *const *targets,
		      uint32_t n_targets);

/* A target has begun: pauses, and the hold that lasts, are its own too. */
void torsh_attend_join(const struct attendance *attendance, struct target *target);

/* Does a job wait that can be answered now? */
int torsh_attend_is_due(const struct attendance *attendance, struct target *const *targets, uint32_t n_targets);

/* Is that job's answer all that the recording lacks? */
int torsh_attend_is_whole(const struct attendance *attendance);

/* The job needs no more: hand it back, and let the targets go. */
void torsh_attend_done(struct attendance *attendance, struct target *const *targets, uint32_t n_targets);

/*
 * Answer it and let the targets of the snapshot go. The snapshot has all but its number of holders; the recording has
 * recording_bytes so far, and recording_fd, which is the writer's.
 */
void torsh_attend_answer(struct attendance *attendance, struct snapshot *snapshot, int recording_fd,
			 uint64_t recording_bytes);

#endif
