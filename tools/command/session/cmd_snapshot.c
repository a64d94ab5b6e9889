/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * torsh snapshot: writes a recording of a running session's state. The writer sends what its
 * recording lacks; this process appends it to a copy of the recording, without delaying the
 * writer.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/base/private_file.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/live/live.h"
#include "tools/terminal/terminal_options.h"

static const char doc[] =
	"Write down what the session that PID belongs to holds now, and its peak so far, without stopping it: an "
	"ordinary recording, which every reading command takes. Processes that are alive are \"running\" in it.\v"
	"The moment of the snapshot is when the session's writer takes the request, for all its processes the same: all "
	"that was allocated or freed before is in it, nothing that came after. Single events are not: of a recording "
	"with TORSH_PROFILER_RECORD=full only the totals are copied.";

enum { KEY_STACKS = 1 };

static const struct argp_option options_snapshot[] = {
	{"output", 'o', "FILE", 0, "where to (snapshot-PROGRAM-PID-TIME.torsh)", 0},
	{"stacks", KEY_STACKS, NULL, 0,
	 "with the stack of each thread of PID, Python's frames included, which is stopped for it by ptrace for a moment: "
	 "torsh report prints them",
	 0},
	{0},
};

struct options {
	uint32_t pid;
	const char *output;
	bool has_stacks;
};

static error_t parse_snapshot(int key, char *argument, struct argp_state *state)
{
	struct options *options = state->input;

	switch (key) {
	case 'o':
		options->output = argument;
		return 0;
	case KEY_STACKS:
		options->has_stacks = true;
		return 0;
	default:
		return torsh_argument_process(key, argument, state, &options->pid);
	}
}

static const struct recorded_process *process_of(const struct live_session *session, uint32_t pid)
{
	const struct recording *recording = session->recording;

	for (size_t i = 0; i < recording->n_processes; i++) {
		if (recording->processes[i]->pid == pid)
			return recording->processes[i];
	}
	return recording->n_processes ? recording->processes[0] : NULL;
}

static char *choose_name(const struct live_session *session, uint32_t pid)
{
	const struct recorded_process *process = process_of(session, pid);

	return torsh_need_text("snapshot-%s-%" PRIu32 "-%.1fs.torsh",
			       process ? torsh_recording_program_name(process) : "session", pid,
			       (double)session->recording->snapshot_ns / 1e9);
}

/*
 * An existing file is replaced, except a running recording, which its writer has locked: above all
 * this session's.
 */
static void expect_replaceable(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat status;

	if (fd < 0 && errno == ENOENT)
		return;
	if (fd < 0)
		torsh_die("can't write %s: %s", path,
			  errno == ELOOP ? "it is a link" : strerror(errno));
	if (fstat(fd, &status) || !S_ISREG(status.st_mode))
		torsh_die("can't write %s: it is not a file", path);
	if (flock(fd, LOCK_EX | LOCK_NB))
		torsh_die("can't write %s: a session is being recorded into it", path);
	close(fd);
}

static void save(const struct live_answer *answer, uint64_t start_realtime_ns,
		 const struct thread_stacks *stacks, const char *path)
{
	struct private_file place;
	int result;

	expect_replaceable(path);
	result = torsh_private_create(&place, path);
	if (result)
		torsh_die("can't write %s: %s", path, strerror(-result));
	result = torsh_live_write_snapshot(answer, start_realtime_ns, stacks, place.fd);
	if (close(place.fd) && !result)
		result = -errno;
	if (result)
		torsh_private_drop(&place);
	else
		result = torsh_private_keep(&place);
	if (result)
		torsh_die("can't write %s: %s", path, strerror(-result));
}

int torsh_command_snapshot(int argc, char **argv)
{
	const struct argp argp = {.options = options_snapshot,
				  .parser = parse_snapshot,
				  .args_doc = "PID",
				  .doc = doc,
				  .children = torsh_terminal_children};
	struct options options = {0};
	struct live_sessions sessions;
	const struct live_session *session;
	struct thread_stacks stacks = {0};
	struct live_answer answer;
	char *path;
	int result;

	argp_err_exit_status = TORSH_EXIT_UNREADABLE;
	argp_parse(&argp, argc, argv, 0, NULL, &options);
	torsh_live_sessions_look(&sessions, 0);
	session = torsh_live_sessions_need(&sessions, options.pid);
	/* First: what a thread hangs in may pass. */
	if (options.has_stacks)
		torsh_thread_stacks_take(&stacks, options.pid);
	result = torsh_live_query(session->socket_path, REQUEST_SNAPSHOT, 0, &answer);
	if (result)
		torsh_die("the writer of process %" PRIu32 " gave no snapshot: %s", options.pid,
			  torsh_live_reason(result));
	path = options.output ? torsh_need(strdup(options.output))
			      : choose_name(session, options.pid);
	save(&answer, session->recording->start_realtime_ns, &stacks, path);
	torsh_thread_stacks_free(&stacks);
	printf("%s: %" PRIu32 " running %s\nnext: torsh peak %s\n", path, answer.reply.n_processes,
	       answer.reply.n_processes == 1 ? "process" : "processes", path);
	torsh_live_close(&answer);
	torsh_live_sessions_free(&sessions);
	free(path);
	return TORSH_EXIT_DONE;
}
