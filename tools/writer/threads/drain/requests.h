/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Requests answered, one after the other. A pause begins or ends at once. For a status or a
 * snapshot all targets are held at its moment: what was stamped before it is in the answer, nothing
 * younger. Owned by the drain thread, except the queue.
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

/* No requests; answer_fd stays the caller's. */
void torsh_requests_create(struct requests *requests, int answer_fd);

/* Free the requests that are left. */
void torsh_requests_destroy(struct requests *requests);

/*
 * The next request; NULL while one waits. torsh_requests_take gets the targets as they are after
 * this call.
 */
struct queued_request *torsh_requests_next(struct requests *requests);

/* Start a request. Returns true when a pause began or ended with it. */
bool torsh_requests_take(struct requests *requests, struct queued_request *queued,
			 struct target *const *targets, uint32_t n_targets);

/* A target has begun: it gets the pauses so far, and is held where the others are. */
void torsh_requests_join(const struct requests *requests, struct target *target);

/* Can the current request be answered now? */
bool torsh_requests_is_due(const struct requests *requests, struct target *const *targets,
			   uint32_t n_targets);

/* Is the answer of the current request all that the recording lacks? */
bool torsh_requests_is_whole(const struct requests *requests);

/* The current request is done: hand it back and release the targets. */
void torsh_requests_done(struct requests *requests, struct target *const *targets,
			 uint32_t n_targets);

/*
 * Answer the current request and release the targets. The snapshot is complete but for n_sites;
 * recording_fd stays the writer's and has recording_bytes so far.
 */
void torsh_requests_answer(struct requests *requests, struct snapshot *snapshot, int recording_fd,
			   uint64_t recording_bytes);

#endif
