/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/process.h"
#include "agent/text.h"
#include "shim/sys.h"

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#define OWN_LOADER "ld-linux-x86-64.so.2"
#else
#define OWN_MACHINE EM_AARCH64
#define OWN_LOADER "ld-linux-aarch64.so.1"
#endif
#define STANDARD_LOADER "ld-lsb-" /* the Linux Standard Base's names for it */

#define HEAD_BYTES 2048u /* holds the headers of every program that a linker makes */
#define LOADER_MAX 256u /* bytes of a loader's path */
#define MAX_INTERPRETERS 4
#define MOUNT_NOSUID 2 /* ST_NOSUID, as statfs says it */

static long open_program(const char *path)
{
	return TORSH_SYS(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0, 0, 0);
}

/* As execvp searches; returns a descriptor or -errno, and puts the path that was found into found. */
static long search_program(const char *file, struct text *found)
{
	const char *path = getenv("PATH");
	long fd = -ENOENT;
	size_t n;

	if (strchr(file, '/')) {
		torsh_text_put(found, file);
		return open_program(file);
	}
	for (path = path ? path : "/bin:/usr/bin"; *path && fd < 0; path += n + (path[n] == ':')) {
		n = strcspn(path, ":");
		found->length = 0;
		torsh_text_put_bytes(found, path, n);
		torsh_text_put(found, "/");
		torsh_text_put(found, file);
		fd = torsh_sys_access(found->bytes, X_OK) ? -ENOENT : open_program(found->bytes);
	}
	return fd;
}

/* Where nothing can be gained the kernel passes over these bits, and the agent is loaded. */
static int is_without_effect(long fd)
{
	struct statfs system = {0};

	return TORSH_SYS(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0, 0) == 1 ||
	       (TORSH_SYS(SYS_fstatfs, fd, &system, 0, 0, 0, 0) == 0 && system.f_flags & MOUNT_NOSUID);
}

static int gains_privileges(long fd)
{
	long user = TORSH_SYS(SYS_geteuid, 0, 0, 0, 0, 0, 0);
	struct stat stat = {0};

	if (torsh_sys_fstat(fd, &stat) || is_without_effect(fd))
		return 0;
	if (stat.st_mode & S_ISUID && stat.st_uid != (uid_t)user)
		return 1;
	if ((stat.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
	    stat.st_gid != (gid_t)TORSH_SYS(SYS_getegid, 0, 0, 0, 0, 0, 0))
		return 1;
	return user != 0 && TORSH_SYS(SYS_fgetxattr, fd, "security.capability", NULL, 0, 0, 0) > 0;
}

enum loader { LOADER_NONE, LOADER_OWN, LOADER_OTHER, LOADER_UNSEEN };

/* Told by its name: every C library's is another. */
static enum loader judge_loader(long fd, const ElfW(Phdr) * segment)
{
	char path[LOADER_MAX];
	const char *name;
	long n = TORSH_SYS(SYS_pread64, fd, path, sizeof(path) - 1, segment->p_offset, 0, 0);

	if (n <= 0 || segment->p_filesz > (size_t)n)
		return LOADER_UNSEEN;
	path[segment->p_filesz] = '\0';
	name = strrchr(path, '/');
	name = name ? name + 1 : path;
	return !strcmp(name, OWN_LOADER) || !strncmp(name, STANDARD_LOADER, sizeof(STANDARD_LOADER) - 1) ? LOADER_OWN
													 : LOADER_OTHER;
}

static enum loader find_loader(long fd, const char *head, size_t n_bytes)
{
	const ElfW(Ehdr) *header = (const void *)head;

	for (unsigned i = 0; i < header->e_phnum; i++) {
		size_t at = header->e_phoff + i * sizeof(ElfW(Phdr));
		ElfW(Phdr) segment;

		if (at + sizeof(segment) > n_bytes)
			return LOADER_UNSEEN;
		memcpy(&segment, head + at, sizeof(segment));
		if (segment.p_type == PT_INTERP)
			return judge_loader(fd, &segment);
	}
	return LOADER_NONE;
}

static int is_agent_there(void)
{
	return !TORSH_SYS(SYS_access, torsh_agent_path(), R_OK, 0, 0, 0, 0);
}

static enum program_problem problem_of_elf(long fd, const char *head, size_t n_bytes)
{
	const ElfW(Ehdr) *header = (const void *)head;
	enum loader loader;

	if (n_bytes < sizeof(*header) || memcmp(head, ELFMAG, SELFMAG))
		return PROGRAM_FINE;
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != OWN_MACHINE)
		return PROGRAM_FOREIGN;
	loader = find_loader(fd, head, n_bytes);
	if (loader == LOADER_OTHER)
		return PROGRAM_OTHER_LIBC;
	if (gains_privileges(fd))
		return PROGRAM_PRIVILEGED;
	if (loader == LOADER_NONE)
		return PROGRAM_STATIC;
	/* Where it isn't seen no claim is made. */
	return is_agent_there() ? PROGRAM_FINE : PROGRAM_WITHOUT_AGENT;
}

/* "#!INTERPRETER": its path into path. 0: this is no script. */
static int read_interpreter(const char *head, size_t n_bytes, char path[PATH_MAX])
{
	size_t at = 2, n = 0;

	if (n_bytes < 3 || head[0] != '#' || head[1] != '!')
		return 0;
	while (at < n_bytes && (head[at] == ' ' || head[at] == '\t'))
		at++;
	while (at < n_bytes && n + 1 < PATH_MAX && !strchr(" \t\r\n", head[at]))
		path[n++] = head[at++];
	path[n] = '\0';
	return n > 0;
}

/* The absolute path of an open file; where the kernel can't tell, that by which it was found. */
static void put_path(long fd, const struct text *found, struct text *out)
{
	char link[32];
	struct text name = TEXT_IN(link);
	long n;

	torsh_text_put(&name, "/proc/self/fd/");
	torsh_text_put_number(&name, (uint64_t)fd);
	n = torsh_sys_readlink(link, out->bytes, out->capacity - 1);
	out->length = n > 0 ? (size_t)n : 0;
	out->bytes[out->length] = '\0';
	if (n <= 0)
		torsh_text_put(out, found->bytes);
}

/* Too much for the stack: exec may be called on that of a signal handler. */
struct inspection {
	char path[PATH_MAX], found[PATH_MAX];
	_Alignas(ElfW(Ehdr)) char head[HEAD_BYTES];
};

static enum program_problem inspect(struct inspection *inspection, struct text *program, struct text *culprit)
{
	enum program_problem problem = PROGRAM_FINE;
	int is_script = 1;

	for (int i = 0; is_script && i < MAX_INTERPRETERS; i++) {
		struct text found = TEXT_IN(inspection->found);
		long fd = search_program(inspection->path, &found), n;

		if (fd < 0)
			return PROGRAM_FINE;
		n = TORSH_SYS(SYS_read, fd, inspection->head, sizeof(inspection->head), 0, 0, 0);
		put_path(fd, &found, i ? culprit : program);
		is_script = n > 0 && read_interpreter(inspection->head, (size_t)n, inspection->path);
		if (n > 0 && !is_script)
			problem = problem_of_elf(fd, inspection->head, (size_t)n);
		TORSH_SYS(SYS_close, fd, 0, 0, 0, 0, 0);
	}
	return problem;
}

enum program_problem torsh_program_inspect(const char *path, struct text *program, struct text *culprit)
{
	struct inspection *inspection = torsh_sys_pages(sizeof(*inspection));
	enum program_problem problem = PROGRAM_FINE;
	struct text wanted;

	if (!inspection)
		return PROGRAM_FINE;
	wanted = (struct text)TEXT_IN(inspection->path);
	torsh_text_put(&wanted, path);
	if (!wanted.is_cut)
		problem = inspect(inspection, program, culprit);
	torsh_sys_munmap(inspection, sizeof(*inspection));
	return problem;
}
