/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * torsh pause, torsh resume and torsh end: pause the recording of a session, resume it, or end it.
 */
#include <argp.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/command/arguments.h"
#include "tools/command/command.h"
#include "tools/live/live.h"
#include "tools/terminal/terminal_options.h"

#define STEP_NS 2000000
#define STEPS_MAX 2500 /* 5 s */

static const char doc_pause[] =
	"Pause the recording of the session that PID belongs to, for all its processes and those that they start, until "
	"`torsh resume PID`. The program runs on.\v"
	"From the moment in which this has ended no block that is allocated is recorded: none is in a report, as a leak "
	"or otherwise. Frees are recorded all the while: a block from before that is freed in the pause is no leak. One "
	"that is resized in it stays with the stack that allocated it. Frees of blocks from the pause are counted apart "
	"(pause_frees). Operators, ranges, marks, values, collectives, runs of Python's garbage collector, device work and "
	"blocks of devices that begin in the pause are not recorded either, even if they end after it; those from before it "
	"are whole. Steps and address space (mmap, brk) are still recorded. Reports have the times of pauses.";

static const char doc_stop[] =
	"Stop the recording of the session that PID belongs to. Where all its processes were started with "
	"TORSH_PROFILER_ENABLED=dormant, or by such a process, the recording is complete then, the writer ends, and "
	"`torsh start PID` begins another one, beside the first. Otherwise this is `torsh pause PID`.\v"
	"A process that is stopped costs what a dormant one does, and what it allocates then is of unknown origin in the "
	"next recording. Where one of them uses a device, or samples or counters of the CPU are recorded, the session is "
	"paused and the writer stays.";

static const char doc_resume[] =
	"Resume the recording of the session that PID belongs to, after `torsh pause PID`, or begin that of a process that "
	"was started with TORSH_PROFILER_ENABLED=dormant, and of its descendants. From "
	"the moment in which this has ended all that begins is recorded.";

static const char doc_end[] =
	"End the recording of the session that PID belongs to, for good: what is there is written and the writer ends, "
	"which this waits for. The program runs on, and is not recorded any more.\v"
	"Nothing else ends a writer before its processes have: it ignores the signals that end a job. Reports mark "
	"the recording as incomplete.";

static error_t parse_pid(int key, char *argument, struct argp_state *state)
{
	return torsh_argument_process(key, argument, state, state->input);
}

/* Returns false if the process is not dormant. */
static bool arm_process(uint32_t pid)
{
	struct live_armed armed;
	int result = torsh_live_arm(pid, &armed);

	if (result == -ESRCH)
		return false;
	if (result)
		torsh_die("process %u could not be recorded: its stderr has the reason", pid);
	printf(armed.has_started
		       ? "started: process %u is recorded"
		       : "armed: process %u makes no call now; its recording begins with its next one",
	       pid);
	if (armed.n_descendants)
		printf("; %u of its descendants %s", armed.n_descendants,
		       armed.n_descendants == 1 ? "is armed" : "are armed");
	putchar('\n');
	return true;
}

/*
 * The writer removes its socket before it writes what is there, and then lets the processes go: the
 * next start of one of them waits for that.
 */
static void await_end(const struct live_session *session)
{
	const struct recording *recording = session->recording;

	for (int i = 0; i < STEPS_MAX && access(session->socket_path, F_OK) == 0; i++)
		nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
	for (size_t i = 0; i < recording->n_processes; i++)
		torsh_live_rest(recording->processes[i]->pid);
}

/* Send the request. Returns whether it could not be done, or was done already. */
static bool request_of_session(int argc, char **argv, enum request_verb verb, const char *doc,
			       struct request_answer *reply)
{

	const struct argp argp = {.parser = parse_pid,
				  .args_doc = "PID",
				  .doc = doc,
				  .children = torsh_terminal_children};
	struct live_sessions sessions;
	const struct live_session *session;
	struct live_answer answer;
	uint32_t pid = 0;
	int result;

	argp_err_exit_status = TORSH_EXIT_UNREADABLE;
	argp_parse(&argp, argc, argv, 0, NULL, &pid);
	torsh_live_sessions_look(&sessions, 0);
	if (verb == REQUEST_RESUME && !torsh_live_sessions_find(&sessions, pid) && arm_process(pid))
		exit(TORSH_EXIT_DONE);
	session = torsh_live_sessions_need(&sessions, pid);
	result = torsh_live_query(session->socket_path, verb, 0, &answer);
	if (result && result != -EALREADY && result != -EOPNOTSUPP)
		torsh_die("the writer of process %u didn't do it: %s", pid,
			  torsh_live_reason(result));
	*reply = answer.reply;
	if (verb == REQUEST_STOP && !result)
		await_end(session);
	torsh_live_sessions_free(&sessions);
	return result != 0;
}

static int print_done(const char *what, const struct request_answer *reply)
{
	printf("%s: %u %s, writer %u\n", what, reply->n_processes,
	       reply->n_processes == 1 ? "process" : "processes", reply->writer_pid);
	return TORSH_EXIT_DONE;
}

int torsh_command_pause(int argc, char **argv)
{
	struct request_answer reply;
	bool was_paused = request_of_session(argc, argv, REQUEST_PAUSE, doc_pause, &reply);

	return print_done(was_paused ? "was paused before" : "paused", &reply);
}

/* A process that was dormant waits to be armed again, without a writer. Others are only paused. */
int torsh_command_stop(int argc, char **argv)
{
	struct request_answer reply;
	int result = request_of_session(argc, argv, REQUEST_STOP, doc_stop, &reply);

	return result ? torsh_command_pause(argc, argv) : print_done("stopped", &reply);
}

int torsh_command_resume(int argc, char **argv)
{
	struct request_answer reply;
	bool was_resumed = request_of_session(argc, argv, REQUEST_RESUME, doc_resume, &reply);

	return print_done(was_resumed ? "was not paused" : "resumed", &reply);
}

int torsh_command_end(int argc, char **argv)
{
	struct request_answer reply;

	request_of_session(argc, argv, REQUEST_END, doc_end, &reply);
	return print_done("ended", &reply);
}
