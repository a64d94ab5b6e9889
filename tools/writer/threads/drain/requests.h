/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Answers requests one by one. A pause begins or ends at once. For a status or a snapshot all
 * targets are held at its moment: the answer contains everything that was stamped before it and
 * nothing younger. Owned by the drain thread, except for the queue.
 */
#ifndef TORSH_WRITER_THREADS_DRAIN_REQUESTS_H
#define TORSH_WRITER_THREADS_DRAIN_REQUESTS_H

#include <stdbool.h>

#include "tools/writer/fold/pauses.h"
#include "tools/writer/threads/drain/snapshot.h"
#include "tools/writer/threads/request_queue.h"

struct requests {
	struct request_queue queue;
	struct queued_request
		*current; /* waits until all targets are folded up to its moment, or NULL */
	struct clock_instant moment;
	struct pauses pauses;
};

/* Initialise without requests; answer_fd stays the caller's. */
void torsh_requests_create(struct requests *requests, int answer_fd);

/* Free the remaining requests. */
void torsh_requests_destroy(struct requests *requests);

/*
 * Returns the next request; NULL while one waits. Pass the targets as they are after this call to
 * torsh_requests_take.
 */
struct queued_request *torsh_requests_next(struct requests *requests);

/* Start a request. Returns true if a pause began or ended with it. */
bool torsh_requests_take(struct requests *requests, struct queued_request *queued,
			 struct target *const *targets, uint32_t n_targets);

/*
 * A target has begun: it receives the pauses so far, and is held at the current request's moment.
 */
void torsh_requests_join(const struct requests *requests, struct target *target);

/* Returns true if the current request can be answered now. */
bool torsh_requests_is_due(const struct requests *requests, struct target *const *targets,
			   uint32_t n_targets);

/* Returns true if the answer of the current request is all that the recording lacks. */
bool torsh_requests_is_whole(const struct requests *requests);

/* Complete the current request: hand it back and release the targets. */
void torsh_requests_done(struct requests *requests, struct target *const *targets,
			 uint32_t n_targets);

/*
 * Answer the current request and release the targets. The snapshot lacks only n_sites; recording_fd
 * stays the writer's and has recording_bytes so far.
 */
void torsh_requests_answer(struct requests *requests, struct snapshot *snapshot, int recording_fd,
			   uint64_t recording_bytes);

#endif
