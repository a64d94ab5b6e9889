/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/process/program.h"
#include "agent/process/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/process/process.h"
#include "agent/process/text_buffer.h"
#include "agent/wire/executable.h"
#include "shim/sys.h"

#define MOUNT_NOSUID 2 /* ST_NOSUID in statfs's f_flags */

static long open_program(const char *path)
{
	return TORSH_SYS(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
}

/* Searches as execvp does. Returns a descriptor or -errno, and puts the path into found. */
static long search_program(const char *file, struct text *found)
{
	const char *path = getenv("PATH");
	long fd;
	size_t n;

	if (strchr(file, '/')) {
		torsh_text_put(found, file);
		return open_program(file);
	}
	path = path ? path : "/bin:/usr/bin";
	do {
		n = strcspn(path, ":");
		*found = (struct text){.bytes = found->bytes, .capacity = found->capacity};
		torsh_text_put_bytes(found, n ? path : ".", n ? n : 1);
		torsh_text_put(found, "/");
		torsh_text_put(found, file);
		fd = found->is_cut || torsh_sys_access(found->bytes, X_OK)
			     ? -ENOENT
			     : open_program(found->bytes);
		path += n;
	} while (fd < 0 && *path++);
	return fd;
}

/* Too large for the stack: exec may be called on a signal handler's. */
struct inspection {
	struct executable_source source;
	struct text *program, *culprit;
	struct stat stat;
	struct statfs system;
	struct text path, link_path; /* of the symbolic links that are followed */
	char found[PATH_MAX], link[sizeof("/proc/self/fd/") + 20];
};

/* The absolute path of an open file; without /proc, the path by which it was found. */
static void put_path(struct inspection *inspection, long fd, struct text *out)
{
	long n;

	inspection->link_path = (struct text)TEXT_IN(inspection->link);
	torsh_text_put(&inspection->link_path, "/proc/self/fd/");
	torsh_text_put_number(&inspection->link_path, (uint64_t)fd);
	n = torsh_sys_readlink(inspection->link, out->bytes, out->capacity - 1);
	out->length = n > 0 ? (size_t)n : 0;
	out->bytes[out->length] = '\0';
	if (n <= 0)
		torsh_text_put(out, inspection->found);
}

static long open_next(struct executable_source *source, const char *path, unsigned n_scripts)
{
	struct inspection *inspection = (struct inspection *)source;
	long fd;

	inspection->path = (struct text)TEXT_IN(inspection->found);
	/* The kernel looks for an interpreter only at its path. */
	if (n_scripts) {
		torsh_text_put(&inspection->path, path);
		fd = open_program(path);
	} else {
		fd = search_program(path, &inspection->path);
	}
	if (fd >= 0)
		put_path(inspection, fd, n_scripts ? inspection->culprit : inspection->program);
	return fd;
}

static long read_at(long fd, void *out, size_t n_bytes, uint64_t offset)
{
	return TORSH_SYS(SYS_pread64, fd, out, n_bytes, offset, 0, 0);
}

static long read_rights(struct executable_source *source, long fd, struct executable_rights *rights)
{
	struct inspection *inspection = (struct inspection *)source;
	struct statfs *system = &inspection->system;
	struct stat *stat = &inspection->stat;
	long rc = torsh_sys_fstat(fd, stat);

	if (rc)
		return rc;
	rights->mode = stat->st_mode;
	rights->owner = stat->st_uid;
	rights->group = stat->st_gid;
	rights->is_nosuid = TORSH_SYS(SYS_fstatfs, fd, system, 0, 0, 0, 0) == 0 &&
			    system->f_flags & MOUNT_NOSUID;
	rights->n_capabilities =
		TORSH_SYS(SYS_fgetxattr, fd, "security.capability", rights->capabilities,
			  sizeof(rights->capabilities), 0, 0);
	return 0;
}

static void close_program(long fd)
{
	TORSH_SYS(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* Not inlined: it isn't on the stack while the program is inspected. */
static __attribute__((noinline)) void describe_caller(struct executable_caller *caller)
{
	caller->user = (uint32_t)TORSH_SYS(SYS_getuid, 0, 0, 0, 0, 0, 0);
	caller->effective_user = (uint32_t)TORSH_SYS(SYS_geteuid, 0, 0, 0, 0, 0, 0);
	caller->group = (uint32_t)TORSH_SYS(SYS_getgid, 0, 0, 0, 0, 0, 0);
	caller->effective_group = (uint32_t)TORSH_SYS(SYS_getegid, 0, 0, 0, 0, 0, 0);
	caller->has_no_new_privileges =
		TORSH_SYS(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0, 0) == 1;
}

static bool is_agent_there(void)
{
	return !torsh_sys_access(torsh_agent_path(), R_OK);
}

enum program_problem torsh_program_inspect(const char *path, struct text *program,
					   struct text *culprit)
{
	struct inspection *inspection = torsh_sys_pages(sizeof(*inspection));
	long problem;

	if (!inspection)
		return PROGRAM_FINE;
	inspection->source.open = open_next;
	inspection->source.read = read_at;
	inspection->source.read_rights = read_rights;
	inspection->source.close = close_program;
	describe_caller(&inspection->source.caller);
	inspection->program = program;
	inspection->culprit = culprit;
	problem = torsh_executable_inspect(&inspection->source, path);
	torsh_sys_munmap(inspection, sizeof(*inspection));
	if (problem == PROGRAM_FINE && !is_agent_there())
		return PROGRAM_WITHOUT_AGENT;
	/* A program that can't be inspected has no problem that is certain. */
	return problem < 0 ? PROGRAM_FINE : (enum program_problem)problem;
}
