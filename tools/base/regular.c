/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/regular.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int torsh_open_regular(const char *path)
{
	/* Without O_NONBLOCK, open of a pipe blocks until it has a writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc = -EINVAL;
	struct stat status;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &status))
		rc = -errno;
	else if (S_ISREG(status.st_mode))
		return fd;
	close(fd);
	return rc;
}
