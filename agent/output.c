/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/config.h"
#include "agent/text.h"
#include "shim/sys.h"

#define RECORDINGS_MAX 1000 /* of one program and pid in one directory */
#define REPLACEMENTS_MAX 100 /* by other sessions that begin just now with the same name */
#define LOCK_PATIENCE_MS 1000
#define LOCK_PAUSE_MS 10

static int ends_with(const char *string, const char *ending)
{
	size_t n = strlen(string), n_ending = strlen(ending);

	return n >= n_ending && !strcmp(string + n - n_ending, ending);
}

static void put_absolute(struct text *text, const char *path)
{
	char cwd[PATH_MAX];

	if (*path != '/' && TORSH_SYS(SYS_getcwd, cwd, sizeof(cwd), 0, 0, 0, 0) > 0) {
		torsh_text_put(text, cwd);
		torsh_text_put(text, "/");
	}
	torsh_text_put(text, path);
}

/* The ending of path that asks for an export, or NULL. */
static const char *export_ending(const char *path)
{
	static const char *const endings[] = {".json", ".json.gz", ".pftrace", ".pftrace.gz"};

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		if (ends_with(path, endings[i]))
			return endings[i];
	}
	return NULL;
}

void torsh_output_plan(struct output *output, const char *program, uint64_t pid)
{
	const char *ending;
	char expanded[PATH_MAX];
	struct text text = TEXT_IN(expanded), path = TEXT_IN(output->path);

	output->program = program;
	output->pid = pid;
	torsh_config_expand(torsh_config.output ? torsh_config.output : "torsh-%n-%p", output->program, &text);
	put_absolute(&path, expanded);
	output->is_file = ends_with(output->path, ".torsh");
	output->export[0] = '\0';
	ending = export_ending(output->path);
	if (ending) {
		/* The recording lies beside the trace that is made of it. */
		strcpy(output->export, output->path);
		path.length -= strlen(ending);
		output->path[path.length] = '\0';
		torsh_text_put(&path, ".torsh");
		output->is_file = 1;
	}
}

static int make_directories(char *path)
{
	for (char *at = path + 1;; at++) {
		char end = *at;

		if (end && end != '/')
			continue;
		*at = '\0';
		if (mkdir(path, 0777) && errno != EEXIST && errno != EISDIR) {
			int error = errno;

			*at = end;
			return -error;
		}
		*at = end;
		if (!end)
			return 0;
	}
}

/* Returns -errno. */
static int close_with_errno(int fd)
{
	int error = errno;

	close(fd);
	return -error;
}

/* As it is, or with a number where there is one of that name already. */
static int open_in(struct output *output, const char *directory)
{
	for (uint64_t i = 0; i < RECORDINGS_MAX; i++) {
		struct text text = TEXT_IN(output->recording);
		int fd;

		torsh_text_put(&text, directory);
		torsh_text_put(&text, "/");
		torsh_text_put(&text, output->program);
		torsh_text_put(&text, "-");
		torsh_text_put_number(&text, output->pid);
		if (i) {
			torsh_text_put(&text, ".");
			torsh_text_put_number(&text, i);
		}
		torsh_text_put(&text, ".torsh");
		if (text.is_cut)
			return -ENAMETOOLONG;
		fd = open(output->recording, O_RDWR | O_CREAT | O_CLOEXEC | O_EXCL, 0666);
		if (fd < 0 && errno != EEXIST)
			return -errno;
		if (fd >= 0)
			return flock(fd, LOCK_EX | LOCK_NB) ? close_with_errno(fd) : fd;
	}
	return -EEXIST;
}

/* The writer of a run before, into the same file, may be about to let it go. */
static int lock_patiently(int fd)
{
	const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * 1000000};
	int result = flock(fd, LOCK_EX | LOCK_NB);

	for (int i = 0; result && errno == EWOULDBLOCK && i < LOCK_PATIENCE_MS / LOCK_PAUSE_MS; i++) {
		nanosleep(&pause, NULL);
		result = flock(fd, LOCK_EX | LOCK_NB);
	}
	return result;
}

/* Is fd what path names itself, not by a link? */
static int is_at(int fd, const char *path)
{
	struct stat own, there;

	return !fstat(fd, &own) && !lstat(path, &there) && own.st_ino == there.st_ino && own.st_dev == there.st_dev;
}

/*
 * A file of this name, empty. A former recording is replaced, not overwritten: who reads it, as its own writer that still
 * exports it, keeps what it has. What is no plain file of that name is emptied in its place.
 */
static int open_named(struct output *output)
{
	struct text text = TEXT_IN(output->recording);

	torsh_text_put(&text, output->path);
	for (int i = 0; i < REPLACEMENTS_MAX; i++) {
		int fd = open(output->recording, O_RDWR | O_CREAT | O_CLOEXEC, 0666), is_own;
		struct stat status;

		if (fd < 0)
			return -errno;
		if (lock_patiently(fd) || fstat(fd, &status))
			return close_with_errno(fd);
		is_own = is_at(fd, output->recording);
		if (is_own && !status.st_size)
			return fd;
		if (!is_own && !lstat(output->recording, &status) && S_ISLNK(status.st_mode))
			return ftruncate(fd, 0) ? close_with_errno(fd) : fd;
		/* Of another's that has replaced it meanwhile the next round finds out whether it is locked. */
		if (is_own && unlink(output->recording))
			return ftruncate(fd, 0) ? close_with_errno(fd) : fd;
		close(fd);
	}
	return -EAGAIN;
}

static int try_output(struct output *output)
{
	char directory[PATH_MAX];
	int result;

	strcpy(directory, output->path);
	if (output->is_file)
		*strrchr(directory, '/') = '\0';
	result = *directory ? make_directories(directory) : 0;
	if (result)
		return result;
	return output->is_file ? open_named(output) : open_in(output, directory);
}

/* Where the user wanted it, else in the directory for temporary files: a run's data is not lost for a path. */
int torsh_output_make(struct output *output)
{
	const char *temporary = getenv("TMPDIR");
	char wanted[PATH_MAX];
	struct text text = TEXT_IN(output->path);
	int fd = try_output(output), error = fd;

	if (fd >= 0)
		return fd;
	strcpy(wanted, output->path);
	torsh_text_put(&text, temporary && *temporary == '/' ? temporary : "/tmp");
	torsh_text_put(&text, "/torsh-");
	torsh_text_put(&text, output->program);
	torsh_text_put(&text, "-");
	torsh_text_put_number(&text, output->pid);
	output->is_file = 0;
	fd = try_output(output);
	if (fd < 0) {
		torsh_say("nothing is recorded: can't write ", wanted, " (", torsh_text_reason(error), ") nor ",
			  output->path, " (", torsh_text_reason(fd), ")", NULL);
		return fd;
	}
	torsh_say("can't write ", wanted, " (", torsh_text_reason(error), "): the recording is ", output->recording,
		  NULL);
	return fd;
}
