/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Finds the sessions: the listening sockets that the kernel lists, and, for users who cannot read
 * that list, the sockets in the agents' folders.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/base/containers/array.h"
#include "tools/base/die.h"
#include "tools/live/live.h"
#include "tools/recording/read.h"

#define SOCKETS "/proc/net/unix"
#define SOCKET_NAME "/socket" /* in the session's own directory, torsh-UID-PID-NUMBER */
#define DIRECTORY_START "torsh-"
#define LISTENING 0x10000u /* __SO_ACCEPTCON, in the flags of /proc/net/unix */

struct paths {
	char **items;
	size_t n, n_room;
};

static void add_path(struct paths *paths, char *path)
{
	for (size_t i = 0; i < paths->n; i++) {
		if (strcmp(paths->items[i], path) == 0) {
			free(path);
			return;
		}
	}
	paths->items =
		torsh_array_reserve(paths->items, paths->n, &paths->n_room, sizeof(*paths->items));
	paths->items[paths->n++] = path;
}

static bool is_session(const char *path)
{
	size_t n = strlen(path), n_name = strlen(SOCKET_NAME);
	const char *directory = path;

	if (*path != '/' || n <= n_name || strcmp(path + n - n_name, SOCKET_NAME) != 0)
		return false;
	for (const char *at = path; at < path + n - n_name; at++) {
		if (*at == '/')
			directory = at + 1;
	}
	return strncmp(directory, DIRECTORY_START, strlen(DIRECTORY_START)) == 0;
}

static void find_listening(struct paths *paths)
{
	FILE *file = fopen(SOCKETS, "re");
	char *line = NULL;
	size_t n_room = 0;

	while (file && getline(&line, &n_room, file) > 0) {
		unsigned flags;
		int at = 0;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%*s %*s %*s %x %*s %*s %*s %n", &flags, &at) == 1 && at &&
		    (flags & LISTENING) && is_session(line + at))
			add_path(paths, torsh_need(strdup(line + at)));
	}
	free(line);
	if (file)
		fclose(file);
}

static void find_below(struct paths *paths, const char *base)
{
	char *start = torsh_need_text(DIRECTORY_START "%u-", (unsigned)geteuid());
	DIR *directory = base && *base == '/' ? opendir(base) : NULL;
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		if (strncmp(entry->d_name, start, strlen(start)) == 0)
			add_path(paths, torsh_need_text("%s/%s" SOCKET_NAME, base, entry->d_name));
	}
	if (directory)
		closedir(directory);
	free(start);
}

static void find_paths(struct paths *paths)
{
	const char *bases[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp", "/dev/shm",
			       "/var/tmp"};

	find_listening(paths);
	for (size_t i = 0; i < sizeof(bases) / sizeof(*bases); i++)
		find_below(paths, bases[i]);
}

static void note_problem(struct live_sessions *sessions, const char *path, const char *why)
{
	free(sessions->problem);
	sessions->problem = torsh_need_text("the session at %s is left out: %s", path, why);
}

static void ask_session(struct live_sessions *sessions, const char *path, uint32_t n_sites)
{
	struct live_answer answer;
	struct recording *recording;
	char *file, error[256] = "";
	int result = torsh_live_query(path, REQUEST_STATUS, n_sites, &answer);

	/* Stale sockets and those of other users are ignored. */
	if (result == -ECONNREFUSED || result == -ENOENT || result == -EACCES ||
	    result == -ECONNRESET)
		return;
	if (result) {
		note_problem(sessions, path, torsh_live_reason(result));
		return;
	}
	file = torsh_need_text("/proc/self/fd/%d", answer.fds[0]);
	recording = torsh_recording_read(file, 0, RECORDING_MOMENTS, error, sizeof(error));
	free(file);
	if (recording) {
		sessions->items = torsh_array_reserve(sessions->items, sessions->n,
						      &sessions->n_room, sizeof(*sessions->items));
		sessions->items[sessions->n++] = (struct live_session){
			.socket_path = torsh_need(strdup(path)),
			.writer_pid = answer.reply.writer_pid,
			.recording = recording,
		};
	} else {
		note_problem(sessions, path, error);
	}
	torsh_live_close(&answer);
}

static int compare_sessions(const void *a, const void *b)
{
	const struct live_session *one = a, *other = b;
	uint64_t x = one->recording->start_realtime_ns, y = other->recording->start_realtime_ns;

	if (x != y)
		return x < y ? -1 : 1;
	return (one->writer_pid > other->writer_pid) - (one->writer_pid < other->writer_pid);
}

void torsh_live_sessions_look(struct live_sessions *sessions, uint32_t n_sites)
{
	struct paths paths = {0};

	*sessions = (struct live_sessions){0};
	find_paths(&paths);
	for (size_t i = 0; i < paths.n; i++) {
		ask_session(sessions, paths.items[i], n_sites);
		free(paths.items[i]);
	}
	free(paths.items);
	if (sessions->n)
		qsort(sessions->items, sessions->n, sizeof(*sessions->items), compare_sessions);
}

void torsh_live_sessions_look_at(struct live_sessions *sessions, const char *socket_path,
				 uint32_t n_sites)
{
	*sessions = (struct live_sessions){0};
	ask_session(sessions, socket_path, n_sites);
}

void torsh_live_sessions_free(struct live_sessions *sessions)
{
	for (size_t i = 0; i < sessions->n; i++) {
		free(sessions->items[i].socket_path);
		torsh_recording_destroy(sessions->items[i].recording);
	}
	free(sessions->items);
	free(sessions->problem);
	*sessions = (struct live_sessions){0};
}

void torsh_live_sessions_warn(const struct live_sessions *sessions)
{
	if (sessions->problem)
		torsh_warn("%s", sessions->problem);
}

static bool has_process(const struct live_session *session, uint32_t pid)
{
	if (session->writer_pid == pid)
		return true;
	for (size_t i = 0; i < session->recording->n_processes; i++) {
		if (session->recording->processes[i]->pid == pid)
			return true;
	}
	return false;
}

const struct live_session *torsh_live_sessions_find(const struct live_sessions *sessions,
						    uint32_t pid)
{
	for (size_t i = 0; i < sessions->n; i++) {
		if (has_process(&sessions->items[i], pid))
			return &sessions->items[i];
	}
	return NULL;
}

const struct live_session *torsh_live_sessions_need(const struct live_sessions *sessions,
						    uint32_t pid)
{
	const struct live_session *session = torsh_live_sessions_find(sessions, pid);

	torsh_live_sessions_warn(sessions);
	if (!session)
		torsh_live_no_process(pid);
	return session;
}

void torsh_live_no_process(uint32_t pid)
{
	torsh_die("no process %" PRIu32
		  " is being recorded for this user; `torsh list` shows which are",
		  pid);
}

uint32_t torsh_live_pid(const char *text)
{
	unsigned long long pid;
	char *end;

	errno = 0;
	pid = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || !pid || pid > INT32_MAX)
		torsh_die("\"%s\" is no pid", text);
	return (uint32_t)pid;
}
