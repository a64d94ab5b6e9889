/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/export/output.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/base/die.h"
#include "tools/terminal/terminal.h"

/*
 * Open an existing path that is not a regular file, and so can't be replaced: a pipe, a terminal,
 * /dev/null. Returns a descriptor or -errno.
 */
static int open_in_place(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	struct stat status;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &status) && (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)))
		return fd;
	close(fd);
	return -EEXIST;
}

static int open_path(struct output *output)
{
	struct stat status;
	int result;

	output->is_whole_only = stat(output->path, &status) < 0 || S_ISREG(status.st_mode);
	if (!output->is_whole_only)
		return open_in_place(output->path);
	result = torsh_private_create(&output->place, output->path);
	return result ? result : output->place.fd;
}

void torsh_output_open(struct output *output, const char *path)
{
	int fd;

	*output = (struct output){.path = path};
	if (!path) {
		output->file = torsh_terminal_is(stdout) ? stdout : torsh_terminal_raw_output();
		return;
	}
	fd = open_path(output);
	if (fd < 0)
		torsh_die("can't write %s: %s", path, strerror(-fd));
	output->file = torsh_terminal_open(fd);
}

void torsh_output_close(struct output *output, int rc)
{
	if (rc == 0 && (fflush(output->file) || ferror(output->file)))
		rc = errno ? -errno : -EIO;
	if (output->path && fclose(output->file) != 0 && rc == 0)
		rc = -errno;
	if (output->is_whole_only && rc == 0)
		rc = torsh_private_keep(&output->place);
	else if (output->is_whole_only)
		torsh_private_drop(&output->place);
	if (rc < 0)
		torsh_die("can't write %s: %s", output->path ? output->path : "standard output",
			  strerror(-rc));
}
