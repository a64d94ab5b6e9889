/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/end_exports.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 12

/* The torsh command that belongs to this writer: in the same folder or in the installed one. */
static int find_torsh(char path[PATH_MAX])
{
	static const char *const places[] = {"torsh", "../../bin/torsh"};
	char own[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *end;

	if (n < 0)
		return -errno;
	own[n] = '\0';
	end = strrchr(own, '/');
	if (!end)
		return -ENOENT;
	end[1] = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (snprintf(path, PATH_MAX, "%s%s", own, places[i]) < PATH_MAX &&
		    !access(path, X_OK))
			return 0;
	}
	return -ENOENT;
}

static void list_arguments(const struct end_exports *exports, const char *source, bool is_session,
			   const char *arguments[ARGUMENTS_MAX])
{
	size_t n = 0;

	arguments[n++] = "torsh";
	arguments[n++] = "finish";
	arguments[n++] = "--recording";
	arguments[n++] = exports->recording;
	arguments[n++] = "--formats";
	arguments[n++] = exports->formats;
	arguments[n++] = "--export-to";
	arguments[n++] = exports->export_to;
	if (exports->is_quiet)
		arguments[n++] = "--quiet";
	if (is_session)
		arguments[n++] = "--session";
	arguments[n++] = source;
	arguments[n] = NULL;
}

pid_t torsh_end_exports_start(const char *const *arguments,
			      const posix_spawn_file_actions_t *actions)
{
	char path[PATH_MAX];
	posix_spawnattr_t attributes;
	int error = -find_torsh(path);
	pid_t pid = 0;

	if (error)
		return -error;
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
	error = posix_spawn(&pid, path, actions, &attributes, (char **)arguments, environ);
	posix_spawnattr_destroy(&attributes);
	return error ? -error : pid;
}

bool torsh_end_exports_has(const struct end_exports *exports)
{
	return *exports->formats || *exports->export_to;
}

void torsh_end_exports_run(const struct end_exports *exports, int fd)
{
	const char *arguments[ARGUMENTS_MAX];
	char source[32];
	pid_t child;
	int kept;

	if (!torsh_end_exports_has(exports))
		return;
	/* A copy that the child inherits. */
	kept = dup(fd);
	snprintf(source, sizeof(source), "/proc/self/fd/%d", kept);
	list_arguments(exports, source, false, arguments);
	child = kept < 0 ? -errno : torsh_end_exports_start(arguments, NULL);
	if (child < 0)
		fprintf(stderr,
			"torsh: %s was not exported: its torsh command can't be run (%s); `torsh export` does it by hand\n",
			exports->recording, strerror(-child));
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	if (kept >= 0)
		close(kept);
}

pid_t torsh_end_exports_begin(const struct end_exports *exports, const char *socket_path,
			      int messages_fd)
{
	const char *arguments[ARGUMENTS_MAX];
	posix_spawn_file_actions_t actions;
	pid_t child;

	list_arguments(exports, socket_path, true, arguments);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, messages_fd, STDERR_FILENO);
	child = torsh_end_exports_start(arguments, &actions);
	posix_spawn_file_actions_destroy(&actions);
	return child;
}
