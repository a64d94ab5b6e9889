/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/drain/requests.h"

#include <stdbool.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define STATUS_TIMEOUT_NS UINT64_C(1000000000)

void torsh_requests_create(struct requests *requests, int answer_fd)
{
	*requests = (struct requests){0};
	torsh_request_queue_create(&requests->queue, answer_fd);
}

void torsh_requests_destroy(struct requests *requests)
{
	torsh_request_queue_destroy(&requests->queue);
	torsh_pauses_destroy(&requests->pauses);
}

struct queued_request *torsh_requests_next(struct requests *requests)
{
	return requests->current ? NULL : torsh_request_queue_take(&requests->queue);
}

/* The state holds from now on, whether it changes or not. */
static bool set_pause(struct requests *requests, struct queued_request *queued,
		      struct target *const *targets, uint32_t n_targets)
{
	bool is_paused = queued->request.verb == REQUEST_PAUSE;
	bool is_change = is_paused != torsh_pauses_is_paused(&requests->pauses);

	if (is_change)
		torsh_pauses_toggle(&requests->pauses, targets, n_targets);
	torsh_request_queue_answer(&requests->queue, queued, is_change ? 0 : -EALREADY);
	return is_change;
}

bool torsh_requests_take(struct requests *requests, struct queued_request *queued,
			 struct target *const *targets, uint32_t n_targets)
{
	queued->answer.n_processes = n_targets;
	if (queued->request.verb == REQUEST_PAUSE || queued->request.verb == REQUEST_RESUME)
		return set_pause(requests, queued, targets, n_targets);
	requests->current = queued;
	requests->moment = torsh_clock_instant();
	for (uint32_t i = 0; i < n_targets; i++)
		torsh_target_hold(targets[i], &requests->moment);
	return false;
}

void torsh_requests_join(const struct requests *requests, struct target *target)
{
	torsh_pauses_publish(&requests->pauses, target);
	if (requests->current)
		torsh_target_hold(target, &requests->moment);
}

/* A status is answered after a time limit even if the writer is far behind its targets. */
static bool has_waited(const struct requests *requests)
{
	return requests->current && requests->current->request.verb == REQUEST_STATUS &&
	       torsh_clock_monotonic_ns() - requests->moment.ns > STATUS_TIMEOUT_NS;
}

bool torsh_requests_is_due(const struct requests *requests, struct target *const *targets,
			   uint32_t n_targets)
{
	if (has_waited(requests))
		return true;
	for (uint32_t i = 0; requests->current && i < n_targets; i++) {
		if (!torsh_target_is_at_hold(targets[i]))
			return false;
	}
	return requests->current != NULL;
}

/*
 * Opened anew: a duplicate of the writer's descriptor would keep the recording locked while the
 * client has it open.
 */
static int reopen(int recording_fd)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", recording_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

bool torsh_requests_is_whole(const struct requests *requests)
{
	uint32_t verb = requests->current->request.verb;

	return verb == REQUEST_SNAPSHOT || verb == REQUEST_JUDGED_SNAPSHOT;
}

void torsh_requests_answer(struct requests *requests, struct snapshot *snapshot, int recording_fd,
			   uint64_t recording_bytes)
{
	struct queued_request *queued = requests->current;
	bool is_whole = torsh_requests_is_whole(requests);
	int result = 0;

	requests->current = NULL;
	snapshot->n_sites = is_whole ? SNAPSHOT_ALL : queued->request.n_sites;
	queued->answer.recording_bytes = recording_bytes;
	queued->fds[0] = torsh_snapshot_make(snapshot);
	if (is_whole)
		queued->fds[1] = reopen(recording_fd);
	if (queued->fds[0] < 0)
		result = queued->fds[0];
	else if (is_whole && queued->fds[1] < 0)
		result = queued->fds[1];
	torsh_request_queue_answer(&requests->queue, queued, result);
	for (uint32_t i = 0; i < snapshot->n_targets; i++)
		torsh_target_release(snapshot->targets[i]);
}

void torsh_requests_done(struct requests *requests, struct target *const *targets,
			 uint32_t n_targets)
{
	struct queued_request *queued = requests->current;

	requests->current = NULL;
	torsh_request_queue_answer(&requests->queue, queued, 0);
	for (uint32_t i = 0; i < n_targets; i++)
		torsh_target_release(targets[i]);
}
