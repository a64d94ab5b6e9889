/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/recording/read.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/recording/agent_stacks.h"
#include "tools/recording/progress.h"
#include "tools/store/chunk_members.h"
#include "tools/store/recording_read.h"

#define POLL_NS 20000000L
#define LOOK_AGAIN_NS UINT64_C(2000000000)
#define READ_AGAIN_MAX 5 /* attempts in a row, each after the writer replaced what was being read */
#define FLAG_EXITING 0x4u /* PF_EXITING and PF_SIGNALED of linux/sched.h */
#define FLAG_SIGNALED 0x400u
/* a start time that differs by more belongs to another process */
#define CLOCKS_DIFFER_NS UINT64_C(2000000000)

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Get the state and the start time (ns since boot) of a pid. Returns false if it doesn't exist. */
static bool read_stat(uint32_t pid, char *state, uint64_t *start_ns)
{
	char path[64], line[1024], *end;
	unsigned flags;
	uint64_t ticks;
	FILE *file;
	bool is_there;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	is_there = fgets(line, sizeof(line), file);
	fclose(file);
	/* The name in parentheses may contain anything; the fields after it have no parenthesis. */
	end = is_there ? strrchr(line, ')') : NULL;
	if (!end ||
	    sscanf(end + 1,
		   " %c %*s %*s %*s %*s %*s %u %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
		   state, &flags, &ticks) != 3)
		return false;
	if (flags & (FLAG_EXITING | FLAG_SIGNALED))
		*state = 'X';
	*start_ns = ticks * (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK));
	return true;
}

/* Killed, but not ended yet. */
static bool is_being_killed(uint32_t pid)
{
	char path[64], line[256];
	uint64_t pending = 0, bits;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/status", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "SigPnd: %" SCNx64, &bits) == 1 ||
		    sscanf(line, "ShdPnd: %" SCNx64, &bits) == 1)
			pending |= bits;
	}
	if (file)
		fclose(file);
	return pending & UINT64_C(1) << (SIGKILL - 1);
}

bool torsh_recording_is_alive(const struct recording *recording,
			      const struct recorded_process *process)
{
	uint64_t boot_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME), start_ns;
	char state;

	if (process->end != TORSH__PROCESS__END_KIND__RUNNING || !process->pid ||
	    !read_stat(process->pid, &state, &start_ns))
		return false;
	if (state == 'Z' || state == 'X' || is_being_killed(process->pid))
		return false;
	return boot_ns + start_ns <
	       recording->start_realtime_ns + process->start_ns + CLOCKS_DIFFER_NS;
}

static bool any_is_alive(const struct recording *recording)
{
	for (size_t i = 0; i < recording->n_processes; i++) {
		if (torsh_recording_is_alive(recording, recording->processes[i]))
			return true;
	}
	return false;
}

static uint32_t members_of(unsigned tables)
{
	uint32_t members = 0;

	if (tables & RECORDING_STACKS)
		members |= CHUNK_MEMBER(STACKS);
	if (tables & RECORDING_USAGE)
		members |= CHUNK_MEMBER(STACK_TOTALS) | CHUNK_MEMBER(LIVE) |
			   CHUNK_MEMBER(VERDICTS) | CHUNK_MEMBER(JOINT) | CHUNK_MEMBER(GROWTH);
	if (tables & RECORDING_VERDICTS)
		members |= CHUNK_MEMBER(VERDICTS);
	if (tables & RECORDING_MOMENTS)
		members |= CHUNK_MEMBER(MOMENTS) | CHUNK_MEMBER(WINDOW_PEAK);
	return members;
}

/* Returns true if every process's last rows are in the file; false too if it can't be read. */
static bool has_all_last_rows(const char *path)
{
	struct recording_reader *reader;
	Torsh__Chunk *chunk;
	bool is_complete = false;

	if (torsh_recording_open(&reader, path, NULL, 0) < 0)
		return false;
	torsh_recording_skip(reader, CHUNK_TABLES | CHUNK_TOTALS | CHUNK_EVENTS | CHUNK_TIMELINE);
	while (torsh_recording_next(reader, &chunk) == 1) {
		is_complete = chunk->end && chunk->end->complete;
		torsh__chunk__free_unpacked(chunk, NULL);
	}
	is_complete = is_complete && !torsh_recording_problem(reader);
	torsh_recording_close(reader);
	return is_complete;
}

/* What is read of a recording, and for how long its writer is awaited. */
struct request {
	const char *path;
	unsigned without, wait_s;
	bool with_replaced; /* read what checkpoints have, too, even if later rows replace it */
};

/*
 * Read the file's current contents. Returns 0, -EAGAIN if it doesn't begin as a recording, or
 * -errno with a message.
 */
static int read_file(const struct request *request, struct recording **out, char **problem,
		     char *error, size_t n_error)
{
	const char *path = request->path;
	struct recording_reader *reader;
	struct recording *recording;
	struct progress progress;
	Torsh__Chunk *chunk;
	const char *found;
	char why[256];
	int rc = torsh_recording_open(&reader, path, why, sizeof(why));

	if (rc < 0) {
		snprintf(error, n_error, "%s: %s", path, rc == -EPROTO ? why : strerror(-rc));
		return rc == -EPROTO ? -EAGAIN : rc;
	}
	torsh_recording_skip(reader, CHUNK_EVENTS | CHUNK_TIMELINE);
	torsh_recording_leave_out(reader, members_of(request->without));
	if (!request->with_replaced)
		torsh_recording_leave_replaced(reader);
	torsh_recording_keep_packed(reader);
	recording = torsh_recording_new(path);
	recording->size_bytes = torsh_recording_size(reader);
	torsh_progress_start(&progress, "reading", torsh_recording_size(reader));
	while ((rc = torsh_recording_next(reader, &chunk)) == 1) {
		rc = torsh_recording_load_packed(recording, chunk, torsh_recording_packed(reader));
		torsh__chunk__free_unpacked(chunk, NULL);
		if (rc < 0)
			break;
		torsh_progress_show(&progress, torsh_recording_position(reader));
	}
	torsh_progress_end(&progress);
	for (size_t i = 0; i < recording->n_processes; i++)
		torsh_agent_stacks_hide(recording->processes[i]);
	found = torsh_recording_problem(reader);
	*problem = found ? torsh_need(strdup(found)) : NULL;
	recording->is_truncated = found;
	torsh_recording_close(reader);
	if (rc == -EPROTO)
		snprintf(error, n_error,
			 "%s was written by a version of torsh that this one doesn't know", path);
	else if (rc < 0)
		snprintf(error, n_error, "%s: %s", path, strerror(-rc));
	if (rc < 0) {
		torsh_recording_destroy(recording);
		free(*problem);
		*problem = NULL;
		return rc;
	}
	*out = recording;
	return 0;
}

/*
 * As read_file. What later rows replace is not read, unless some of these may be in a damaged part.
 */
static int read_now(const struct request *request, struct recording **out, char **problem,
		    char *error, size_t n_error)
{
	struct request attempt = *request;
	int rc;

	attempt.with_replaced = !has_all_last_rows(request->path);
	rc = read_file(&attempt, out, problem, error, n_error);
	if (rc < 0 || attempt.with_replaced || !*problem)
		return rc;
	torsh_recording_destroy(*out);
	free(*problem);
	attempt.with_replaced = true;
	return read_file(&attempt, out, problem, error, n_error);
}

/*
 * Wait until the writer closes the file, or it is time to look again. Returns false once it is
 * closed.
 */
static bool wait_for_writer(const char *path, uint64_t begin_ns, uint64_t until_ns, bool *is_said)
{
	const struct timespec pause = {.tv_nsec = POLL_NS};

	while (torsh_recording_is_being_written(path) == 1) {
		uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

		if (now_ns >= until_ns)
			return true;
		if (!*is_said && now_ns - begin_ns >= LOOK_AGAIN_NS)
			torsh_warn("waiting for the writer to finish %s", path);
		*is_said = *is_said || now_ns - begin_ns >= LOOK_AGAIN_NS;
		nanosleep(&pause, NULL);
	}
	return false;
}

/* As torsh_recording_read; problems of the file go to *problem, which the caller frees. */
static struct recording *read_settled(const struct request *request, char **problem, char *error,
				      size_t n_error)
{
	const char *path = request->path;
	uint64_t begin_ns = clock_ns(CLOCK_MONOTONIC),
		 end_ns = begin_ns + request->wait_s * UINT64_C(1000000000);
	int n_torn = 0;
	bool is_said = false;

	for (;;) {
		/*
		 * Checked before reading, so that the last writes before the writer closes the
		 * file are read.
		 */
		bool is_held = torsh_recording_is_being_written(path) == 1;
		struct recording *recording = NULL;
		int rc;
		uint64_t now_ns;
		bool is_over;

		*problem = NULL;
		rc = read_now(request, &recording, problem, error, n_error);
		now_ns = clock_ns(CLOCK_MONOTONIC);
		is_over = now_ns >= end_ns;
		if (rc < 0 && (rc != -EAGAIN || !is_held || is_over))
			return NULL;
		if (rc == 0 && is_held && recording->is_truncated && n_torn++ < READ_AGAIN_MAX) {
			const struct timespec pause = {.tv_nsec = POLL_NS};

			free(*problem);
			torsh_recording_destroy(recording);
			nanosleep(&pause, NULL);
			continue;
		}
		if (rc == 0 &&
		    (!is_held || is_over || (recording->n_processes && any_is_alive(recording)))) {
			recording->is_being_written = is_held;
			return recording;
		}
		free(*problem);
		torsh_recording_destroy(recording);
		wait_for_writer(path, begin_ns,
				now_ns + LOOK_AGAIN_NS < end_ns ? now_ns + LOOK_AGAIN_NS : end_ns,
				&is_said);
	}
}

struct recording *torsh_recording_read(const char *path, unsigned wait_s, unsigned without,
				       char *error, size_t n_error)
{
	const struct request request = {.path = path, .without = without, .wait_s = wait_s};
	char *problem;
	struct recording *recording = read_settled(&request, &problem, error, n_error);

	/* In a growing file the last chunk is often incomplete: not worth a message. */
	if (problem && !recording->is_being_written)
		torsh_warn("%s: %s", path, problem);
	free(problem);
	return recording;
}

void torsh_recording_await(const char *path, unsigned wait_s)
{
	const struct request request = {
		.path = path,
		.without = RECORDING_STACKS | RECORDING_USAGE | RECORDING_MOMENTS,
		.wait_s = wait_s,
	};
	char *problem, error[512];

	if (torsh_recording_is_being_written(path) != 1)
		return;
	torsh_recording_destroy(read_settled(&request, &problem, error, sizeof(error)));
	free(problem);
}
