/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/requests.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define STATUS_TIMEOUT_NS UINT64_C(1000000000)

void torsh_requests_create(struct requests *requests, int answer_fd)
{
	*requests = (struct requests){0};
	torsh_request_queue_create(&requests->jobs, answer_fd);
}

void torsh_requests_destroy(struct requests *requests)
{
	torsh_request_queue_destroy(&requests->jobs);
	torsh_pauses_destroy(&requests->pauses);
}

struct queued_request *torsh_requests_next(struct requests *requests)
{
	return requests->job ? NULL : torsh_request_queue_take(&requests->jobs);
}

/* Whether that is a change or not, it is so from now on. */
static int set_pause(struct requests *requests, struct queued_request *job,
		     struct target *const *targets, uint32_t n_targets)
{
	int is_paused = job->request.verb == REQUEST_PAUSE;
	int is_change = is_paused != torsh_pauses_lasts(&requests->pauses);

	if (is_change)
		torsh_pauses_turn(&requests->pauses, targets, n_targets);
	torsh_request_queue_answer(&requests->jobs, job, is_change ? 0 : -EALREADY);
	return is_change;
}

int torsh_requests_take(struct requests *requests, struct queued_request *job,
			struct target *const *targets, uint32_t n_targets)
{
	job->answer.n_processes = n_targets;
	if (job->request.verb == REQUEST_PAUSE || job->request.verb == REQUEST_RESUME)
		return set_pause(requests, job, targets, n_targets);
	requests->job = job;
	requests->moment = torsh_ticks_moment();
	for (uint32_t i = 0; i < n_targets; i++)
		torsh_target_hold(targets[i], &requests->moment);
	return 0;
}

void torsh_requests_join(const struct requests *requests, struct target *target)
{
	torsh_pauses_tell(&requests->pauses, target);
	if (requests->job)
		torsh_target_hold(target, &requests->moment);
}

/* A writer that is far behind its targets still says how things stand. */
static int has_waited(const struct requests *requests)
{
	return requests->job && requests->job->request.verb == REQUEST_STATUS &&
	       torsh_ticks_monotonic_ns() - requests->moment.ns > STATUS_TIMEOUT_NS;
}

int torsh_requests_is_due(const struct requests *requests, struct target *const *targets,
			  uint32_t n_targets)
{
	if (has_waited(requests))
		return 1;
	for (uint32_t i = 0; requests->job && i < n_targets; i++) {
		if (!torsh_target_is_at_hold(targets[i]))
			return 0;
	}
	return requests->job != NULL;
}

/*
 * A descriptor of its own: a copy of ours would keep the recording locked for as long as the caller
 * has it.
 */
static int reopen(int recording_fd)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", recording_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int torsh_requests_is_whole(const struct requests *requests)
{
	return requests->job->request.verb == REQUEST_SNAPSHOT;
}

void torsh_requests_answer(struct requests *requests, struct snapshot *snapshot, int recording_fd,
			   uint64_t recording_bytes)
{
	struct queued_request *job = requests->job;
	int is_whole = torsh_requests_is_whole(requests), result = 0;

	requests->job = NULL;
	snapshot->n_sites = is_whole ? SNAPSHOT_ALL : job->request.n_sites;
	job->answer.recording_bytes = recording_bytes;
	job->fds[0] = torsh_snapshot_make(snapshot);
	if (is_whole)
		job->fds[1] = reopen(recording_fd);
	if (job->fds[0] < 0)
		result = job->fds[0];
	else if (is_whole && job->fds[1] < 0)
		result = job->fds[1];
	torsh_request_queue_answer(&requests->jobs, job, result);
	for (uint32_t i = 0; i < snapshot->n_targets; i++)
		torsh_target_let_go(snapshot->targets[i]);
}

void torsh_requests_done(struct requests *requests, struct target *const *targets,
			 uint32_t n_targets)
{
	struct queued_request *job = requests->job;

	requests->job = NULL;
	torsh_request_queue_answer(&requests->jobs, job, 0);
	for (uint32_t i = 0; i < n_targets; i++)
		torsh_target_let_go(targets[i]);
}
