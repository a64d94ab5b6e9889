/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * torsh finish: the writer runs it when a session ends, or when its first process does and waits
 * for it. It writes the requested exports, next to the recording. Each runs in a child process, as
 * `torsh export` does, so that it may exit, and its memory is freed.
 * 	torsh finish --recording PATH [--formats NAMES] [--export-to FILE] [--quiet] SOURCE
 * SOURCE is a path of the recording, or with --session the socket of a running session. Internal:
 * `torsh --help` doesn't list it.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/command/command.h"
#include "tools/live/live.h"

struct finish_options {
	const char *recording; /* the exports are written next to it */
	const char *formats; /* separated by commas; "": none */
	const char *export_to; /* one more file; its extension selects the format; "": none */
	bool is_quiet; /* on stderr only what was not written, without a reason */
	bool is_session; /* the source is its socket */
	const char *source;
};

enum when { ON_REQUEST, AT_END };
enum ranks { TOGETHER, BY_RANK };

static const struct format {
	const char *name, *ending;
	enum when when;
	enum ranks ranks; /* whether its readers need a file per rank */
} formats[] = {
#define FORMAT(name, holds, ending, when, ranks, text) {#name, ending, when, ranks},
#include "agent/wire/formats.def"
#undef FORMAT
};

/* Send stderr to /dev/null. Returns false if that failed. */
static bool silence(void)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	return null >= 0 && dup2(null, STDERR_FILENO) >= 0;
}

/* Returns whether the file was written. */
static bool export_as(const char *recording, const struct format *format, const char *path,
		      bool is_quiet)
{
	char *arguments[] = {"torsh export", (char *)recording, "--format",  (char *)format->name,
			     "-o",	     (char *)path,	"--by-rank", NULL};
	int n = format->ranks == BY_RANK ? 7 : 6, status = 0;
	pid_t child;

	arguments[n] = NULL;
	fflush(NULL);
	child = fork();
	if (child == 0) {
		if (is_quiet && !silence())
			_exit(TORSH_EXIT_UNREADABLE);
		_exit(torsh_command_export(n, arguments));
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (child < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != TORSH_EXIT_DONE) {
		torsh_warn("%s was not written; `torsh export --format %s` can do it again", path,
			   format->name);
		return false;
	}
	if (!is_quiet)
		torsh_warn("exported to %s", path);
	return true;
}

/* Returns the recording's path with another extension; the caller frees it. */
static char *path_beside(const char *recording, const char *ending)
{
	size_t n = strlen(recording), n_own = strlen(".torsh");

	if (n > n_own && strcmp(recording + n - n_own, ".torsh") == 0)
		n -= n_own;
	return torsh_need_text("%.*s%s", (int)n, recording, ending);
}

static const struct format *format_called(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		if (formats[i].when == AT_END && strcmp(formats[i].name, name) == 0)
			return &formats[i];
	}
	return NULL;
}

static bool export_beside(const struct finish_options *options, const char *source,
			  const char *name)
{
	const struct format *format = format_called(name);
	bool is_written;
	char *path;

	if (!format) {
		torsh_warn("this version doesn't write %s at the end", name);
		return false;
	}
	path = path_beside(options->recording, format->ending);
	is_written = export_as(source, format, path, options->is_quiet);
	free(path);
	return is_written;
}

/* Returns whether all were written. */
static bool export_all(const struct finish_options *options, const char *source)
{
	char *copy = torsh_need(strdup(options->formats)), *rest = copy, *name;
	const struct format *by_ending =
		format_called(strstr(options->export_to, ".pftrace") ? "perfetto" : "chrome");
	bool is_all_written = true;

	while ((name = strsep(&rest, ","))) {
		if (*name && !export_beside(options, source, name))
			is_all_written = false;
	}
	free(copy);
	if (*options->export_to &&
	    !export_as(source, by_ending, options->export_to, options->is_quiet))
		is_all_written = false;
	return is_all_written;
}

/* Write the snapshot to a memfd. Returns its descriptor or -errno. */
static int take_snapshot(const char *socket_path)
{
	struct live_sessions sessions;
	struct live_answer answer;
	int fd, result;

	torsh_live_sessions_look_at(&sessions, socket_path, 0);
	result = sessions.n ? torsh_live_query(socket_path, REQUEST_SNAPSHOT, 0, &answer) : -ENOENT;
	if (!result) {
		fd = memfd_create("torsh-session", MFD_CLOEXEC);
		result = fd < 0 ? -errno
				: torsh_live_write_snapshot(
					  &answer, sessions.items[0].recording->start_realtime_ns,
					  fd);
		if (result && fd >= 0)
			close(fd);
		torsh_live_close(&answer);
	}
	torsh_live_sessions_free(&sessions);
	return result ? result : fd;
}

static bool export_session(const struct finish_options *options)
{
	int fd = take_snapshot(options->source);
	bool is_all_written;
	char *source;

	if (fd < 0)
		return false;
	source = torsh_need_text("/proc/self/fd/%d", fd);
	is_all_written = export_all(options, source);
	free(source);
	close(fd);
	return is_all_written;
}

static bool parse_options(struct finish_options *options, int argc, char **argv)
{
	static const struct option known[] = {
		{"recording", required_argument, NULL, 'r'},
		{"formats", required_argument, NULL, 'f'},
		{"export-to", required_argument, NULL, 'o'},
		{"quiet", no_argument, NULL, 'q'},
		{"session", no_argument, NULL, 's'},
		{0},
	};
	int option;

	*options = (struct finish_options){.formats = "", .export_to = ""};
	while ((option = getopt_long(argc, argv, "", known, NULL)) >= 0) {
		switch (option) {
		case 'r':
			options->recording = optarg;
			break;
		case 'f':
			options->formats = optarg;
			break;
		case 'o':
			options->export_to = optarg;
			break;
		case 'q':
			options->is_quiet = true;
			break;
		case 's':
			options->is_session = true;
			break;
		default:
			return false;
		}
	}
	options->source = argv[optind];
	return options->recording && optind == argc - 1;
}

int torsh_command_finish(int argc, char **argv)
{
	struct finish_options options;

	if (!parse_options(&options, argc, argv)) {
		torsh_warn("the writer runs it; it is not for use by hand");
		return TORSH_EXIT_UNREADABLE;
	}
	if (options.is_session)
		return export_session(&options) ? TORSH_EXIT_DONE : TORSH_EXIT_UNREADABLE;
	return export_all(&options, options.source) ? TORSH_EXIT_DONE : TORSH_EXIT_UNREADABLE;
}
