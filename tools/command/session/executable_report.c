/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/command/session/executable_report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "agent/wire/executable.h"
#include "tools/base/die.h"

static bool is_runnable(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, X_OK) == 0;
}

char *torsh_program_find(const char *name)
{
	const char *path = getenv("PATH");
	char *copy, *rest, *directory, *found = NULL;

	if (strchr(name, '/'))
		return access(name, F_OK) == 0 ? torsh_need(strdup(name)) : NULL;
	copy = rest = torsh_need(strdup(path ? path : "/bin:/usr/bin"));
	while (!found && (directory = strsep(&rest, ":"))) {
		char *file = torsh_need_text("%s/%s", *directory ? directory : ".", name);

		if (is_runnable(file))
			found = file;
		else
			free(file);
	}
	free(copy);
	return found;
}

static const char *const reasons[N_PROGRAM_PROBLEMS] = {
	[PROGRAM_STATIC] =
		"is linked statically: no loader runs that could preload the agent, so nothing would be recorded. Link "
		"it dynamically",
	[PROGRAM_PRIVILEGED] =
		"would get more rights than its user has (setuid, setgid, file capabilities, or other effective "
		"than real ids): the loader ignores LD_PRELOAD there. Run a copy without them",
	[PROGRAM_FOREIGN] =
		"is made for another kind of machine than the agent: it can't be loaded there",
	[PROGRAM_OTHER_LIBC] =
		"runs on another C library than the GNU one, for which the agent is made: it can't be loaded there",
	[PROGRAM_SANITIZED] =
		"is built with a sanitizer (-fsanitize=), which replaces the allocator itself and ends a program that "
		"preloads anything else. Build it without",
};

struct search {
	struct executable_source source;
	char path[PATH_MAX]; /* of the file opened last */
};

static long open_next(struct executable_source *source, const char *path, unsigned n_scripts)
{
	struct search *search = (struct search *)source;
	int fd;

	(void)n_scripts;
	snprintf(search->path, sizeof(search->path), "%s", path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static long read_at(long fd, void *out, size_t n_bytes, uint64_t offset)
{
	ssize_t n = pread((int)fd, out, n_bytes, (off_t)offset);

	return n < 0 ? -errno : n;
}

static long read_rights(struct executable_source *source, long fd, struct executable_rights *rights)
{
	struct statvfs system;
	struct stat status;

	(void)source;
	if (fstat((int)fd, &status))
		return -errno;
	rights->mode = status.st_mode;
	rights->owner = status.st_uid;
	rights->group = status.st_gid;
	rights->is_nosuid = fstatvfs((int)fd, &system) == 0 && system.f_flag & ST_NOSUID;
	rights->n_capabilities = fgetxattr((int)fd, "security.capability", rights->capabilities,
					   sizeof(rights->capabilities));
	return 0;
}

static void close_program(long fd)
{
	close((int)fd);
}

int torsh_program_check(const char *path, char *reason, size_t n_reason)
{
	struct search search = {
		.source =
			{
				.open = open_next,
				.read = read_at,
				.read_rights = read_rights,
				.close = close_program,
				.caller =
					{
						.user = getuid(),
						.effective_user = geteuid(),
						.group = getgid(),
						.effective_group = getegid(),
						.has_no_new_privileges =
							prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1,
					},
			},
	};
	long problem = torsh_executable_inspect(&search.source, path);
	char failed[128];
	const char *why = failed;

	/* An executable without read permission, which is rare, cannot be checked: it is run. */
	if (problem == PROGRAM_FINE || (problem == -EACCES && access(search.path, X_OK) == 0))
		return 0;
	if (problem == -ENOEXEC)
		why = "is neither an ELF program nor a script with an interpreter in its #! line, or is cut off";
	else if (problem == -ELOOP)
		why = "is the end of too long a chain of #! lines";
	else if (problem < 0)
		snprintf(failed, sizeof(failed), "can't be read: %s", strerror((int)-problem));
	else
		why = reasons[problem];
	snprintf(reason, n_reason, "%s %s", search.path, why);
	return -EINVAL;
}
