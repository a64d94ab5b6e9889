/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * torsh finish: the writer runs it when a session ends, or when its first process does and waits
 * for it. It writes the requested exports, next to the recording. Each runs in a child process, as
 * `torsh export` does, so that it may exit, and its memory is freed.
 * 	torsh finish --recording PATH [--formats NAMES] [--export-to FILE] [--quiet] SOURCE
 * SOURCE is a path of the recording, or with --session the socket of a running session. The writer
 * also runs it for calls of torsh.h that write a file of the session:
 *	torsh finish --recording PATH --write WHAT --argument TEXT --pid PID --export-to FILE
 *		--session SOCKET
 * Internal: `torsh --help` doesn't list it.
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
#include "tools/base/private_file.h"
#include "tools/command/command.h"
#include "tools/live/live.h"

struct finish_options {
	const char *recording; /* the exports are written next to it */
	const char *formats; /* separated by commas; "": none */
	const char *export_to; /* one more file; its extension selects the format; "": none */
	bool is_quiet; /* on stderr only what was not written, without a reason */
	bool is_session; /* the source is its socket */
	/* for a call of torsh.h: "snapshot", "export" or "leaks", the format or the mark, and who calls */
	const char *write, *argument, *pid;
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
					  NULL, fd);
		if (result && fd >= 0)
			close(fd);
		torsh_live_close(&answer);
	}
	torsh_live_sessions_free(&sessions);
	return result ? result : fd;
}

static int count(char *const *arguments)
{
	int n = 0;

	while (arguments[n])
		n++;
	return n;
}

/* Write the leaks of the process since a mark. Returns an exit status. */
static int write_leaks(const struct finish_options *options, char *source)
{
	char *since = torsh_need_text("--since=%s", options->argument);
	char *arguments[] = {"torsh leaks",	   source, since, "--json", "--limit=0", "--pid",
			     (char *)options->pid, NULL};
	struct private_file place;
	int status = -1;
	pid_t child;

	if (torsh_private_create(&place, options->export_to))
		return TORSH_EXIT_UNREADABLE;
	fflush(NULL);
	child = fork();
	if (child == 0)
		exit(dup2(place.fd, STDOUT_FILENO) < 0
			     ? TORSH_EXIT_UNREADABLE
			     : torsh_command_leaks(count(arguments), arguments));
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	free(since);
	close(place.fd);
	if (child > 0 && status == 0 && torsh_private_keep(&place) == 0)
		return TORSH_EXIT_DONE;
	torsh_private_drop(&place);
	return TORSH_EXIT_UNREADABLE;
}

/* Returns an exit status. source: path of the session's snapshot. */
static int write_called(const struct finish_options *options, char *source)
{
	char *to = (char *)options->export_to, *argument = (char *)options->argument;
	char *snapshot[] = {"torsh snapshot", (char *)options->pid, "-o", to, NULL};
	char *export[] = {"torsh export", source, "--format", argument, "-o", to, NULL};

	if (strcmp(options->write, "snapshot") == 0)
		return torsh_command_snapshot(count(snapshot), snapshot);
	if (strcmp(options->write, "export") == 0)
		return torsh_command_export(count(export), export);
	return write_leaks(options, source);
}

/* Returns an exit status. */
static int export_session(const struct finish_options *options)
{
	int fd = take_snapshot(options->source), status;
	char *source;

	if (fd < 0)
		return TORSH_EXIT_UNREADABLE;
	source = torsh_need_text("/proc/self/fd/%d", fd);
	if (options->write)
		status = write_called(options, source);
	else
		status = export_all(options, source) ? TORSH_EXIT_DONE : TORSH_EXIT_UNREADABLE;
	free(source);
	close(fd);
	return status;
}

static bool parse_options(struct finish_options *options, int argc, char **argv)
{
	static const struct option known[] = {
		{"recording", required_argument, NULL, 'r'},
		{"formats", required_argument, NULL, 'f'},
		{"export-to", required_argument, NULL, 'o'},
		{"quiet", no_argument, NULL, 'q'},
		{"session", no_argument, NULL, 's'},
		{"write", required_argument, NULL, 'w'},
		{"argument", required_argument, NULL, 'a'},
		{"pid", required_argument, NULL, 'p'},
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
		case 'w':
			options->write = optarg;
			break;
		case 'a':
			options->argument = optarg;
			break;
		case 'p':
			options->pid = optarg;
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
		return export_session(&options);
	return export_all(&options, options.source) ? TORSH_EXIT_DONE : TORSH_EXIT_UNREADABLE;
}
