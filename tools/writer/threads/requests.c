/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/requests.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define STATUS_PATIENCE_NS UINT64_C(1000000000)

void torsh_attend_create(struct attendance *attendance, int answer_fd)
{
	*attendance = (struct attendance){0};
	torsh_jobs_create(&attendance->jobs, answer_fd);
}

void torsh_attend_destroy(struct attendance *attendance)
{
	torsh_jobs_destroy(&attendance->jobs);
	torsh_pauses_destroy(&attendance->pauses);
}

struct job *torsh_attend_next(struct attendance *attendance)
{
	return attendance->job ? NULL : torsh_jobs_take(&attendance->jobs);
}

/* Whether that is a change or not, it is so from now on. */
static int set_pause(struct attendance *attendance, struct job *job, struct target *const *targets, uint32_t n_targets)
{
	int is_paused = job->request.verb == REQUEST_PAUSE;
	int is_change = is_paused != torsh_pauses_lasts(&attendance->pauses);

	if (is_change)
		torsh_pauses_turn(&attendance->pauses, targets, n_targets);
	torsh_jobs_answer(&attendance->jobs, job, is_change ? 0 : -EALREADY);
	return is_change;
}

int torsh_attend_take(struct attendance *attendance, struct job *job, struct target *const *targets, uint32_t n_targets)
{
	job->answer.n_processes = n_targets;
	if (job->request.verb == REQUEST_PAUSE || job->request.verb == REQUEST_RESUME)
		return set_pause(attendance, job, targets, n_targets);
	attendance->job = job;
	attendance->moment = torsh_ticks_moment();
	for (uint32_t i = 0; i < n_targets; i++)
		torsh_target_hold(targets[i], &attendance->moment);
	return 0;
}

void torsh_attend_join(const struct attendance *attendance, struct target *target)
{
	torsh_pauses_tell(&attendance->pauses, target);
	if (attendance->job)
		torsh_target_hold(target, &attendance->moment);
}

/* A writer that is far behind its targets still says how things stand. */
static int has_waited(const struct attendance *attendance)
{
	return attendance->job && attendance->job->request.verb == REQUEST_STATUS &&
	       torsh_ticks_monotonic_ns() - attendance->moment.ns > STATUS_PATIENCE_NS;
}

int torsh_attend_is_due(const struct attendance *attendance, struct target *const *targets, uint32_t n_targets)
{
	if (has_waited(attendance))
		return 1;
	for (uint32_t i = 0; attendance->job && i < n_targets; i++) {
		if (!torsh_target_is_at_hold(targets[i]))
			return 0;
	}
	return attendance->job != NULL;
}

/* A descriptor of its own: a copy of ours would keep the recording locked for as long as the caller has it. */
static int reopen(int recording_fd)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", recording_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int torsh_attend_is_whole(const struct attendance *attendance)
{
	return attendance->job->request.verb == REQUEST_SNAPSHOT;
}

void torsh_attend_answer(struct attendance *attendance, struct snapshot *snapshot, int recording_fd,
			 uint64_t recording_bytes)
{
	struct job *job = attendance->job;
	int is_whole = torsh_attend_is_whole(attendance), result = 0;

	attendance->job = NULL;
	snapshot->n_holders = is_whole ? SNAPSHOT_ALL : job->request.n_holders;
	job->answer.recording_bytes = recording_bytes;
	job->fds[0] = torsh_snapshot_make(snapshot);
	if (is_whole)
		job->fds[1] = reopen(recording_fd);
	if (job->fds[0] < 0)
		result = job->fds[0];
	else if (is_whole && job->fds[1] < 0)
		result = job->fds[1];
	torsh_jobs_answer(&attendance->jobs, job, result);
	for (uint32_t i = 0; i < snapshot->n_targets; i++)
		torsh_target_let_go(snapshot->targets[i]);
}

void torsh_attend_done(struct attendance *attendance, struct target *const *targets, uint32_t n_targets)
{
	struct job *job = attendance->job;

	attendance->job = NULL;
	torsh_jobs_answer(&attendance->jobs, job, 0);
	for (uint32_t i = 0; i < n_targets; i++)
		torsh_target_let_go(targets[i]);
}
