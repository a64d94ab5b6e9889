/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/config.h"
#include "agent/text.h"
#include "shim/sys.h"

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

void torsh_output_plan(struct output *output, const char *program, uint64_t pid)
{
	static const char *const exports[] = {".json", ".json.gz", ".pftrace", ".pftrace.gz"};
	char expanded[PATH_MAX];
	struct text text = TEXT_IN(expanded), path = TEXT_IN(output->path);

	output->program = program;
	output->pid = pid;
	torsh_config_expand(torsh_config.output ? torsh_config.output : "torsh-%n-%p", output->program, &text);
	put_absolute(&path, expanded);
	output->is_file = ends_with(output->path, ".torsh");
	output->export[0] = '\0';
	for (size_t i = 0; i < sizeof(exports) / sizeof(exports[0]); i++)
		if (ends_with(output->path, exports[i])) {
			/* The recording lies beside the trace that is made of it. */
			strcpy(output->export, output->path);
			output->path[path.length - strlen(exports[i])] = '\0';
			path.length -= strlen(exports[i]);
			torsh_text_put(&path, ".torsh");
			output->is_file = 1;
			break;
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

/* A new file of its own for this session, locked until the writer is done. Returns the descriptor or -errno. */
static int open_recording(struct output *output, const char *directory)
{
	struct text text;
	char number[24];
	int fd = -1;

	for (uint64_t i = 0; fd < 0 && i < 1000; i++) {
		text = (struct text)TEXT_IN(output->recording);
		if (output->is_file) {
			torsh_text_put(&text, output->path);
		} else {
			torsh_text_put(&text, directory);
			torsh_text_put(&text, "/");
			torsh_text_put(&text, output->program);
			torsh_text_put(&text, "-");
			torsh_text_put_number(&text, output->pid);
			if (i) {
				struct text n = TEXT_IN(number);

				torsh_text_put_number(&n, i);
				torsh_text_put(&text, ".");
				torsh_text_put(&text, number);
			}
			torsh_text_put(&text, ".torsh");
		}
		if (text.is_cut)
			return -ENAMETOOLONG;
		fd = open(output->recording, O_RDWR | O_CREAT | O_CLOEXEC | (output->is_file ? 0 : O_EXCL), 0666);
		if (fd < 0 && (errno != EEXIST || output->is_file))
			return -errno;
	}
	if (fd < 0)
		return -EEXIST;
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		int error = errno;

		close(fd);
		return -error;
	}
	if (output->is_file && ftruncate(fd, 0))
		return -errno;
	return fd;
}

static int try_output(struct output *output)
{
	char directory[PATH_MAX];
	int result;

	strcpy(directory, output->path);
	if (output->is_file)
		*strrchr(directory, '/') = '\0';
	result = *directory ? make_directories(directory) : 0;
	return result ? result : open_recording(output, directory);
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
