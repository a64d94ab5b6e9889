/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * torsh keep: makes a running session keep a copy of itself, as its flight recorder does by its own
 * causes.
 */
#include <argp.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/live/live.h"
#include "tools/terminal/terminal_options.h"

#define LOOK_EVERY_NS 10000000
#define LOOKS_MAX 6000u /* a minute */

static const char doc[] =
	"Keep a copy of the session that PID belongs to as it is now, as NAME.kept/N.torsh beside its recording NAME.torsh, "
	"without stopping it: an ordinary recording. Of a flight recorder (TORSH_PROFILER_RECORD=ring:...) it has the last "
	"part of the timeline.\v"
	"With TORSH_PROFILER_KEEP_WITH the other ranks of the job keep a copy, too.";

static error_t parse_pid(int key, char *argument, struct argp_state *state)
{
	return torsh_argument_process(key, argument, state, state->input);
}

/* The path of copy number n of this recording; the caller frees it. */
static char *path_of(const char *recording, uint64_t n)
{
	size_t n_name = strlen(recording), n_ending = strlen(".torsh");

	if (n_name > n_ending && strcmp(recording + n_name - n_ending, ".torsh") == 0)
		n_name -= n_ending;
	return torsh_need_text("%.*s.kept/%" PRIu64 ".torsh", (int)n_name, recording, n);
}

/* Returns whether the file appears. */
static bool await_file(const char *path)
{
	for (uint32_t i = 0; i < LOOKS_MAX; i++) {
		if (access(path, F_OK) == 0)
			return true;
		nanosleep(&(struct timespec){.tv_nsec = LOOK_EVERY_NS}, NULL);
	}
	return false;
}

int torsh_command_keep(int argc, char **argv)
{
	const struct argp argp = {.parser = parse_pid,
				  .args_doc = "PID",
				  .doc = doc,
				  .children = torsh_terminal_children};
	const struct live_session *session;
	struct live_sessions sessions;
	struct live_answer answer;
	uint32_t pid = 0;
	char *path;
	int result;

	argp_err_exit_status = TORSH_EXIT_UNREADABLE;
	argp_parse(&argp, argc, argv, 0, NULL, &pid);
	torsh_live_sessions_look(&sessions, 0);
	session = torsh_live_sessions_need(&sessions, pid);
	result = torsh_live_query_process(session->socket_path, REQUEST_KEEP, pid, &answer);
	if (result)
		torsh_die("the writer of process %" PRIu32 " kept nothing: %s", pid,
			  torsh_live_reason(result));
	path = path_of(session->recording->snapshot_of, answer.reply.recording_bytes);
	if (!await_file(path))
		torsh_die("%s was not written; `torsh report` says why", path);
	printf("kept: %s\nnext: torsh report %s\n", path, path);
	torsh_live_close(&answer);
	torsh_live_sessions_free(&sessions);
	free(path);
	return TORSH_EXIT_DONE;
}
