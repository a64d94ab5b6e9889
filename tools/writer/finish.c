/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/writer/finish.h. */
#include "tools/writer/finish.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/command/command.h"
#include "tools/die.h"

static const struct {
	const char *format, *ending;
} endings[] = {
	{"chrome", ".json"},   {"perfetto", ".pftrace"},	   {"csv", ".csv"},	{"tensorboard", ".tensorboard"},
	{"sqlite", ".sqlite"}, {"speedscope", ".speedscope.json"}, {"pprof", ".pb.gz"},
};

/* In a child: it may end itself, and what it takes is given back. */
static void export_as(const char *recording, const char *format, const char *path, int is_said)
{
	char *arguments[] = {"torsh export", (char *)recording, "--format", (char *)format, "-o", (char *)path, NULL};
	sigset_t term;
	pid_t child;
	int status = 0;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		sigemptyset(&term);
		sigaddset(&term, SIGTERM);
		sigprocmask(SIG_UNBLOCK, &term, NULL);
		_exit(torsh_command_export((int)(sizeof(arguments) / sizeof(*arguments)) - 1, arguments));
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != TORSH_EXIT_DONE)
		torsh_warn("%s was not written; `torsh export --format %s` can do it again", path, format);
	else if (is_said)
		torsh_warn("exported to %s", path);
}

/* recording with another ending, the caller's. */
static char *path_beside(const char *recording, const char *ending)
{
	size_t n = strlen(recording), n_own = strlen(".torsh");

	if (n > n_own && strcmp(recording + n - n_own, ".torsh") == 0)
		n -= n_own;
	return torsh_need_text("%.*s%s", (int)n, recording, ending);
}

static void export_format(const char *recording, const char *format, int is_said)
{
	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		if (strcmp(endings[i].format, format) == 0) {
			char *path = path_beside(recording, endings[i].ending);

			export_as(recording, format, path, is_said);
			free(path);
			return;
		}
	}
	torsh_warn("this version doesn't write %s at the end", format);
}

void torsh_finish_exports(const char *recording, const char *formats, const char *export_to, int is_said)
{
	char *copy = torsh_need(strdup(formats)), *rest = copy, *format;

	while ((format = strsep(&rest, ","))) {
		if (*format)
			export_format(recording, format, is_said);
	}
	free(copy);
	if (*export_to)
		export_as(recording, strstr(export_to, ".pftrace") ? "perfetto" : "chrome", export_to, is_said);
}
