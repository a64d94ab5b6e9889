/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/writer/threads/end_exports.h. */
#include "tools/writer/threads/end_exports.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/command/command.h"
#include "tools/base/die.h"
#include "tools/live/live.h"

static const struct {
	const char *format, *ending;
} endings[] = {
	{"chrome", ".json"},
	{"perfetto", ".pftrace"},
	{"csv", ".csv"},
	{"tensorboard", ".tensorboard"},
	{"sqlite", ".sqlite"},
	{"speedscope", ".speedscope.json"},
	{"pprof", ".pb.gz"},
	{"json", ".events.json"},
	{"folded", ".folded"},
	{"memory", ".memory.pickle"},
	{"profile", ".profile.json"},
};

static int silence(void)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	return null < 0 || dup2(null, STDERR_FILENO) < 0;
}

/* In a child: it may end itself, and what it takes is given back. Returns 0, or 1 where that failed. */
static int export_as(const char *recording, const char *format, const char *path, int is_said)
{
	char *arguments[] = {"torsh export", (char *)recording, "--format", (char *)format,
			     "-o",	     (char *)path,	NULL,	    NULL};
	int n = 6;
	pid_t child;
	int status = 0;

	/* Readers of these want each rank by itself. */
	if (strcmp(format, "chrome") == 0 || strcmp(format, "profile") == 0)
		arguments[n++] = "--by-rank";
	fflush(NULL);
	child = fork();
	if (child == 0) {
		if (!is_said && silence())
			_exit(TORSH_EXIT_UNREADABLE);
		_exit(torsh_command_export(n, arguments));
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != TORSH_EXIT_DONE) {
		torsh_warn("%s was not written; `torsh export --format %s` can do it again", path, format);
		return 1;
	}
	if (is_said)
		torsh_warn("exported to %s", path);
	return 0;
}

/* recording with another ending, the caller's. */
static char *path_beside(const char *recording, const char *ending)
{
	size_t n = strlen(recording), n_own = strlen(".torsh");

	if (n > n_own && strcmp(recording + n - n_own, ".torsh") == 0)
		n -= n_own;
	return torsh_need_text("%.*s%s", (int)n, recording, ending);
}

static int export_format(const struct finish_plan *plan, const char *source, const char *format)
{
	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		if (strcmp(endings[i].format, format) == 0) {
			char *path = path_beside(plan->recording, endings[i].ending);
			int failed = export_as(source, format, path, plan->is_said);

			free(path);
			return failed;
		}
	}
	torsh_warn("this version doesn't write %s at the end", format);
	return 1;
}

int torsh_finish_has_exports(const struct finish_plan *plan)
{
	return *plan->formats || *plan->export_to;
}

static int export_all(const struct finish_plan *plan, const char *source)
{
	char *copy = torsh_need(strdup(plan->formats)), *rest = copy, *format;
	int n_failed = 0;

	while ((format = strsep(&rest, ","))) {
		if (*format)
			n_failed += export_format(plan, source, format);
	}
	free(copy);
	if (*plan->export_to)
		n_failed += export_as(source, strstr(plan->export_to, ".pftrace") ? "perfetto" : "chrome",
				      plan->export_to, plan->is_said);
	return n_failed;
}

int torsh_finish_exports(const struct finish_plan *plan, int fd)
{
	char *source = torsh_need_text("/proc/self/fd/%d", fd);
	int n_failed = export_all(plan, source);

	free(source);
	return n_failed;
}

/* Into a file of memory. Returns its descriptor or -errno. */
static int take_snapshot(const char *socket_path)
{
	struct live_sessions sessions;
	struct live_answer answer;
	int fd, result;

	torsh_live_sessions_look_at(&sessions, socket_path, 0);
	result = sessions.n ? torsh_live_ask(socket_path, REQUEST_SNAPSHOT, 0, &answer) : -ENOENT;
	if (!result) {
		fd = memfd_create("torsh-session", MFD_CLOEXEC);
		result = fd < 0 ? -errno
				: torsh_live_write_snapshot(&answer, sessions.items[0].profile->start_realtime_ns, fd);
		if (result && fd >= 0)
			close(fd);
		torsh_live_close(&answer);
	}
	torsh_live_sessions_free(&sessions);
	return result ? result : fd;
}

int torsh_finish_exports_early(const struct finish_plan *plan, const char *socket_path)
{
	int fd = take_snapshot(socket_path), n_failed;

	if (fd < 0)
		return fd;
	n_failed = torsh_finish_exports(plan, fd);
	close(fd);
	return n_failed;
}
