/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/private_file.h"

#include <stdbool.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/base/die.h"

#define TRIES_MAX 100
#define TEMPORARY_SUFFIX_BYTES sizeof(".0123456789abcdef.tmp")

/* Open the directory of path and store the last part of the name. Returns 0 or -errno. */
static int open_directory(struct private_file *file, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char *directory =
		!slash ? NULL
		       : torsh_need_text("%.*s", slash == path ? 1 : (int)(slash - path), path);
	size_t n = strlen(name);

	file->directory_fd = open(directory ? directory : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	free(directory);
	if (file->directory_fd < 0)
		return -errno;
	if (n == 0 || n + TEMPORARY_SUFFIX_BYTES > sizeof(file->name)) {
		close(file->directory_fd);
		return n ? -ENAMETOOLONG : -EISDIR;
	}
	memcpy(file->name, name, n + 1);
	return 0;
}

static int create_temporary(struct private_file *file)
{
	for (int i = 0; i < TRIES_MAX; i++) {
		uint64_t number;

		if (getrandom(&number, sizeof(number), 0) != sizeof(number))
			return -EIO;
		snprintf(file->temporary, sizeof(file->temporary), "%.*s.%016" PRIx64 ".tmp",
			 (int)(sizeof(file->temporary) - TEMPORARY_SUFFIX_BYTES), file->name,
			 number);
		file->fd = openat(file->directory_fd, file->temporary,
				  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (file->fd >= 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return -EEXIST;
}

int torsh_private_create(struct private_file *file, const char *path)
{
	int result = open_directory(file, path);

	if (result)
		return result;
	result = create_temporary(file);
	if (result)
		close(file->directory_fd);
	return result;
}

int torsh_private_keep(struct private_file *file)
{
	int result = 0;

	if (renameat(file->directory_fd, file->temporary, file->directory_fd, file->name)) {
		result = -errno;
		unlinkat(file->directory_fd, file->temporary, 0);
	}
	close(file->directory_fd);
	return result;
}

void torsh_private_drop(struct private_file *file)
{
	unlinkat(file->directory_fd, file->temporary, 0);
	close(file->directory_fd);
}

char *torsh_private_path(const struct private_file *file)
{
	return torsh_need_text("/proc/self/fd/%d/%s", file->directory_fd, file->temporary);
}

static bool is_trusted(const struct stat *status)
{
	return status->st_uid == geteuid() || status->st_uid == 0;
}

int torsh_private_directory(const char *path)
{
	struct stat status;

	if (mkdir(path, 0700) == 0)
		return 0;
	if (errno != EEXIST || lstat(path, &status) < 0)
		return -errno;
	/* The link itself first, then its target. */
	if (!is_trusted(&status))
		return -EPERM;
	if (stat(path, &status) < 0)
		return -errno;
	if (!S_ISDIR(status.st_mode))
		return -ENOTDIR;
	return is_trusted(&status) ? 0 : -EPERM;
}
