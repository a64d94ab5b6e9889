/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Requests answered, one after the other. A pause turns at once. For a status or a snapshot all
 * targets are held at its moment: what was stamped before it is in the answer, nothing younger.
 * Owned by the drain thread, but for its jobs.
 */
#ifndef TORSH_WRITER_THREADS_REQUESTS_H
#define TORSH_WRITER_THREADS_REQUESTS_H

#include <stdbool.h>

#include "tools/writer/fold/pauses.h"
#include "tools/writer/threads/request_queue.h"
#include "tools/writer/threads/snapshot.h"

struct requests {
	struct request_queue queue;
	struct queued_request
		*current; /* that waits until all targets are at its moment, or NULL */
	struct clock_instant moment;
	struct pauses pauses;
};

void torsh_requests_create(struct requests *requests, int answer_fd);
void torsh_requests_destroy(struct requests *requests);

/*
 * The next job, NULL while one waits. The targets of torsh_requests_take are those that are there
 * after this.
 */
struct queued_request *torsh_requests_next(struct requests *requests);

/* Take a job up. Returns 1 when a pause began or ended with it. */
bool torsh_requests_take(struct requests *requests, struct queued_request *queued,
			 struct target *const *targets, uint32_t n_targets);

/* A target has begun: pauses, and the hold that lasts, are its own too. */
void torsh_requests_join(const struct requests *requests, struct target *target);

/* Does a job wait that can be answered now? */
bool torsh_requests_is_due(const struct requests *requests, struct target *const *targets,
			   uint32_t n_targets);

/* Is that job's answer all that the recording lacks? */
bool torsh_requests_is_whole(const struct requests *requests);

/* The job needs no more: hand it back, and let the targets go. */
void torsh_requests_done(struct requests *requests, struct target *const *targets,
			 uint32_t n_targets);

/*
 * Answer it and let the targets of the snapshot go. The snapshot has all but its number of holders;
 * the recording has recording_bytes so far, and recording_fd, which is the writer's.
 */
void torsh_requests_answer(struct requests *requests, struct snapshot *snapshot, int recording_fd,
			   uint64_t recording_bytes);

#endif
