/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/drain/file_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/base/memory.h"
#include "tools/writer/threads/drain/program_calls.h"
#include "tools/writer/threads/end_exports.h"

#define REFUSED 2 /* the command's exit status */
#define PLACE_BYTES (CHANNEL_PATH_BYTES + 64)

struct file_call {
	struct program_call call;
	struct mailbox *mailbox;
	pthread_t thread;
	pid_t child;
	int result; /* before is_done */
	_Atomic bool is_done;
	struct file_call *next;
};

static const char *const names[] = {
	[CALL_SNAPSHOT] = "snapshot", [CALL_EXPORT] = "export", [CALL_LEAKS] = "leaks"};

static int result_of(int status)
{
	if (!WIFEXITED(status))
		return -EIO;
	return WEXITSTATUS(status) == 0 ? 0 : WEXITSTATUS(status) == REFUSED ? -EINVAL : -EIO;
}

static void *await_command(void *argument)
{
	struct file_call *call = argument;
	int status = -1;

	while (waitpid(call->child, &status, 0) < 0 && errno == EINTR)
		;
	call->result = result_of(status);
	/* Pairs with the acquire in torsh_file_calls_answer: the result is there. */
	atomic_store_explicit(&call->is_done, true, memory_order_release);
	torsh_mailbox_wake(call->mailbox);
	return NULL;
}

/* Copies a text of the channel, which the process may change meanwhile. */
static void copy_text(char *to, const char *from, size_t n_bytes)
{
	memcpy(to, from, n_bytes);
	to[n_bytes - 1] = '\0';
}

/* Returns the child's pid or -errno. */
static pid_t start_command(const struct file_calls *calls, const struct target *target,
			   uint32_t verb)
{
	const struct channel_header *header = target->view.header;
	char argument[CHANNEL_ARGUMENT_BYTES], path[CHANNEL_PATH_BYTES], place[PLACE_BYTES],
		pid[16];
	const char *arguments[] = {"torsh",	  "finish",
				   "--recording", calls->recording_path,
				   "--write",	  names[verb],
				   "--argument",  argument,
				   "--pid",	  pid,
				   "--export-to", place,
				   "--session",	  calls->socket_path,
				   NULL};
	posix_spawn_file_actions_t actions;
	pid_t child;

	copy_text(argument, header->call_argument, sizeof(argument));
	copy_text(path, header->call_path, sizeof(path));
	snprintf(pid, sizeof(pid), "%d", (int)target->pid);
	if (*path == '/')
		snprintf(place, sizeof(place), "%s", path);
	else
		snprintf(place, sizeof(place), "/proc/%d/cwd/%s", (int)target->pid, path);
	/* The reason is in the result: the program's own messages stay alone. */
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	child = torsh_end_exports_start(arguments, &actions);
	posix_spawn_file_actions_destroy(&actions);
	return child;
}

void torsh_file_call_begin(struct file_calls *calls, struct target *target,
			   const struct program_call *call)
{
	struct file_call *started;
	pid_t child = start_command(calls, target, call->verb);

	if (child < 0) {
		torsh_program_call_reply(target, call, (int)child);
		return;
	}
	started = torsh_memory_new(1, sizeof(*started));
	started->call = *call;
	started->mailbox = calls->mailbox;
	started->child = child;
	if (pthread_create(&started->thread, NULL, await_command, started)) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		free(started);
		torsh_program_call_reply(target, call, -EAGAIN);
		return;
	}
	started->next = calls->first;
	calls->first = started;
}

static void reply(const struct file_call *call, struct target *const *targets, uint32_t n_targets)
{
	for (uint32_t i = 0; i < n_targets; i++) {
		if (targets[i]->number == call->call.target)
			torsh_program_call_reply(targets[i], &call->call, call->result);
	}
}

void torsh_file_calls_answer(struct file_calls *calls, struct target *const *targets,
			     uint32_t n_targets)
{
	struct file_call **next = &calls->first;

	while (*next) {
		struct file_call *call = *next;

		/* Pairs with the release in await_command. */
		if (!atomic_load_explicit(&call->is_done, memory_order_acquire)) {
			next = &call->next;
			continue;
		}
		*next = call->next;
		pthread_join(call->thread, NULL);
		reply(call, targets, n_targets);
		free(call);
	}
}

void torsh_file_calls_destroy(struct file_calls *calls)
{
	while (calls->first) {
		struct file_call *call = calls->first;

		calls->first = call->next;
		/* Its thread reaps it: until then the pid is the child's. */
		if (!atomic_load_explicit(&call->is_done, memory_order_acquire))
			kill(call->child, SIGKILL);
		pthread_join(call->thread, NULL);
		free(call);
	}
}
