/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/session/output_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/process/config.h"
#include "agent/process/text_buffer.h"
#include "shim/sys.h"

#define RECORDINGS_MAX 1000 /* of one program and pid in one directory */
/* by other sessions that begin at the same moment with the same name */
#define REPLACEMENTS_MAX 100
#define LOCK_TIMEOUT_MS 1000
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

/* The ending of path that selects an export, or NULL. */
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
	torsh_config_expand(torsh_config.output ? torsh_config.output : "torsh-%n-%p",
			    output->program, &text);
	put_absolute(&path, expanded);
	output->is_file = ends_with(output->path, ".torsh");
	output->export[0] = '\0';
	ending = export_ending(output->path);
	if (ending) {
		/* The recording lies next to the trace made of it. */
		strcpy(output->export, output->path);
		path.length -= strlen(ending);
		output->path[path.length] = '\0';
		torsh_text_put(&path, ".torsh");
		output->is_file = true;
	}
}

/* Create the missing directories with mode 0700. */
static int make_directories(char *path)
{
	for (char *at = path + 1;; at++) {
		char end = *at;

		if (end && end != '/')
			continue;
		*at = '\0';
		if (mkdir(path, 0700) && errno != EEXIST && errno != EISDIR) {
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

static bool is_trusted(const struct stat *status)
{
	return status->st_uid == geteuid() || status->st_uid == 0;
}

/*
 * Open the directory and check that neither it nor a link to it is another user's, who could
 * replace or redirect what is written there. Returns its descriptor, or -errno: -EPERM for another
 * user's.
 */
static int open_directory(const char *path)
{
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC, fd;
	struct stat status;
	int result = (int)torsh_sys_lstat(path, &status);

	if (result)
		return result;
	if (!is_trusted(&status))
		return -EPERM;
	fd = open(path, S_ISLNK(status.st_mode) ? flags : flags | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	result = (int)torsh_sys_fstat(fd, &status);
	if (!result && is_trusted(&status))
		return fd;
	close(fd);
	return result ? result : -EPERM;
}

/* Create a new file with mode 0600. Returns its descriptor or -errno. */
static int create_in(int directory, const char *name)
{
	int fd = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

/* Under its name, or with a number if that exists already. */
static int open_in(struct output *output, int directory, const char *path)
{
	for (uint64_t i = 0; i < RECORDINGS_MAX; i++) {
		struct text text = TEXT_IN(output->recording);
		size_t n_directory;
		int fd;

		torsh_text_put(&text, path);
		torsh_text_put(&text, "/");
		n_directory = text.length;
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
		fd = create_in(directory, output->recording + n_directory);
		if (fd >= 0)
			return flock(fd, LOCK_EX | LOCK_NB) ? close_with_errno(fd) : fd;
		if (fd != -EEXIST)
			return fd;
	}
	return -EEXIST;
}

/* The writer of an earlier run into the same file may be about to release it. */
static int lock_with_retries(int fd)
{
	const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * 1000000};
	int result = flock(fd, LOCK_EX | LOCK_NB);

	for (int i = 0; result && errno == EWOULDBLOCK && i < LOCK_TIMEOUT_MS / LOCK_PAUSE_MS;
	     i++) {
		nanosleep(&pause, NULL);
		result = flock(fd, LOCK_EX | LOCK_NB);
	}
	return result;
}

/*
 * Whether the file of this name may be replaced: no other session records into it, and it is a file
 * or a link.
 */
static int check_replaceable(int directory, const char *name)
{
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), result;
	struct stat status;

	if (fd < 0)
		return errno == ENOENT || errno == ELOOP ? 0 : -errno;
	result = (int)torsh_sys_fstat(fd, &status);
	if (!result && !S_ISREG(status.st_mode))
		result = -EEXIST;
	else if (!result && lock_with_retries(fd))
		result = -errno;
	close(fd);
	return result;
}

/*
 * Create an empty file of this name. A previous recording is replaced, not overwritten: its
 * readers, such as its own writer during an export, keep their data. A link is replaced too,
 * whatever its target.
 */
static int open_named(struct output *output, int directory)
{
	const char *name = strrchr(output->path, '/') + 1;
	struct text text = TEXT_IN(output->recording);

	torsh_text_put(&text, output->path);
	for (int i = 0; i < REPLACEMENTS_MAX; i++) {
		int fd = create_in(directory, name), result;

		if (fd >= 0)
			return flock(fd, LOCK_EX | LOCK_NB) ? close_with_errno(fd) : fd;
		if (fd != -EEXIST)
			return fd;
		result = check_replaceable(directory, name);
		if (result)
			return result;
		/* Another process may have been faster: the next round checks again. */
		if (unlinkat(directory, name, 0) && errno != ENOENT)
			return -errno;
	}
	return -EAGAIN;
}

static int try_output(struct output *output)
{
	char path[PATH_MAX];
	int result, directory;

	strcpy(path, output->path);
	if (output->is_file)
		*strrchr(path, '/') = '\0';
	result = *path ? make_directories(path) : 0;
	if (result)
		return result;
	/* The directory of a chosen file name is the user's choice; the file itself is new. */
	directory = output->is_file ? open(*path ? path : "/", O_PATH | O_DIRECTORY | O_CLOEXEC)
				    : open_directory(path);
	if (directory < 0)
		return output->is_file ? -errno : directory;
	result = output->is_file ? open_named(output, directory) : open_in(output, directory, path);
	close(directory);
	return result;
}

/* With a number if a directory of that name belongs to another user, who may have guessed it. */
static int try_fresh(struct output *output)
{
	struct text text = {.bytes = output->path,
			    .length = strlen(output->path),
			    .capacity = sizeof(output->path)};
	size_t n = text.length;
	int result = try_output(output);

	for (uint64_t i = 1; result == -EPERM && i <= REPLACEMENTS_MAX; i++) {
		text.length = n;
		torsh_text_put(&text, ".");
		torsh_text_put_number(&text, i);
		result = text.is_cut ? -ENAMETOOLONG : try_output(output);
	}
	return result;
}

static const char *reason_of(int error)
{
	return error == -EPERM ? "it belongs to another user" : torsh_text_reason(error);
}

/* In the requested place, else in the directory for temporary files: a bad path loses no data. */
int torsh_output_make(struct output *output)
{
	const char *temporary = getenv("TMPDIR");
	char wanted[PATH_MAX];
	struct text text = TEXT_IN(output->path);
	int fd = torsh_config.output ? try_output(output) : try_fresh(output), error = fd;

	if (fd >= 0)
		return fd;
	strcpy(wanted, output->path);
	torsh_text_put(&text, temporary && *temporary == '/' ? temporary : "/tmp");
	torsh_text_put(&text, "/torsh-");
	torsh_text_put(&text, output->program);
	torsh_text_put(&text, "-");
	torsh_text_put_number(&text, output->pid);
	output->is_file = false;
	fd = try_fresh(output);
	if (fd < 0) {
		torsh_message("nothing is recorded: can't write ", wanted, " (", reason_of(error),
			      ") nor ", output->path, " (", reason_of(fd), ")", NULL);
		return fd;
	}
	torsh_message("can't write ", wanted, " (", reason_of(error), "): the recording is ",
		      output->recording, NULL);
	return fd;
}
