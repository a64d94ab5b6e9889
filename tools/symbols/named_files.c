/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/symbols/named_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/types.h>

#include "tools/base/regular.h"

static _Thread_local bool guarded;

bool torsh_named_files_guard(bool is_guarded)
{
	bool before = guarded;

	guarded = is_guarded;
	return before;
}

static int open_named(const char *path)
{
	int fd;

	guarded = false; /* torsh_open_regular calls open as well */
	fd = torsh_open_regular(path);
	guarded = true;
	if (fd >= 0)
		return fd;
	errno = fd == -EINVAL ? ENOENT : -fd;
	return -1;
}

static int open_by(const char *path, int flags, va_list arguments)
{
	mode_t mode = 0;

	if (guarded && (flags & (O_ACCMODE | O_DIRECTORY | O_CREAT)) == O_RDONLY)
		return open_named(path);
	if (flags & (O_CREAT | __O_TMPFILE))
		mode = va_arg(arguments, mode_t);
	return openat(AT_FDCWD, path, flags, mode);
}

/*
 * Interposes open of the C library, because elfutils has no hook for the .dwo file of a unit. The
 * functions have other names in C, because headers may define open inline. O_NONBLOCK also
 * prevents waiting on a file of /proc that is regular by its mode.
 */
#define OPEN(name, interposed)                                                              \
	int torsh_named_files_##name(const char *path, int flags, ...) __asm__(interposed); \
	int torsh_named_files_##name(const char *path, int flags, ...)                      \
	{                                                                                   \
		va_list arguments;                                                          \
		int fd;                                                                     \
                                                                                            \
		va_start(arguments, flags);                                                 \
		fd = open_by(path, flags, arguments);                                       \
		va_end(arguments);                                                          \
		return fd;                                                                  \
	}
OPEN(open, "open")
OPEN(open64, "open64")
#undef OPEN
