/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/text.h"
#include "shim/sys.h"

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#else
#define OWN_MACHINE EM_AARCH64
#endif

#define HEAD_BYTES 2048u /* holds the headers of every program that a linker makes */
#define MAX_INTERPRETERS 4

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
		fd = TORSH_SYS(SYS_access, found->bytes, X_OK, 0, 0, 0, 0) ? -ENOENT : open_program(found->bytes);
	}
	return fd;
}

static int gains_privileges(long fd, const struct stat *stat)
{
	if (stat->st_mode & S_ISUID && stat->st_uid != (uid_t)TORSH_SYS(SYS_geteuid, 0, 0, 0, 0, 0, 0))
		return 1;
	if ((stat->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
	    stat->st_gid != (gid_t)TORSH_SYS(SYS_getegid, 0, 0, 0, 0, 0, 0))
		return 1;
	return TORSH_SYS(SYS_geteuid, 0, 0, 0, 0, 0, 0) != 0 &&
	       TORSH_SYS(SYS_fgetxattr, fd, "security.capability", NULL, 0, 0, 0) > 0;
}

static int has_loader(const char *head, size_t n_bytes)
{
	const ElfW(Ehdr) *header = (const void *)head;

	for (unsigned i = 0; i < header->e_phnum; i++) {
		size_t at = header->e_phoff + i * sizeof(ElfW(Phdr));
		ElfW(Phdr) segment;

		if (at + sizeof(segment) > n_bytes)
			return 1; /* not seen: no claim is made */
		memcpy(&segment, head + at, sizeof(segment));
		if (segment.p_type == PT_INTERP)
			return 1;
	}
	return 0;
}

static const char *problem_of_elf(const char *head, size_t n_bytes)
{
	const ElfW(Ehdr) *header = (const void *)head;

	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != OWN_MACHINE)
		return " is of another architecture than the agent and is not recorded";
	if (!has_loader(head, n_bytes))
		return " is statically linked: nothing can be preloaded, and it is not recorded";
	return NULL;
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

void torsh_program_inspect(const char *file, struct text *problem)
{
	char path[PATH_MAX], found_bytes[PATH_MAX];
	struct text found = TEXT_IN(found_bytes), wanted = TEXT_IN(path);
	_Alignas(ElfW(Ehdr)) char head[HEAD_BYTES] = {0};
	int is_script = 1;

	torsh_text_put(&wanted, file);
	for (int i = 0; is_script && i < MAX_INTERPRETERS; i++) {
		const char *what = NULL;
		struct stat stat = {0};
		long fd, n;

		found.length = 0;
		fd = search_program(path, &found);
		if (fd < 0)
			return;
		n = TORSH_SYS(SYS_read, fd, head, sizeof(head), 0, 0, 0);
		is_script = n > 0 && read_interpreter(head, (size_t)n, path);
		if (!is_script && TORSH_SYS(SYS_fstat, fd, &stat, 0, 0, 0, 0) == 0 && gains_privileges(fd, &stat))
			what = " gains privileges (setuid, setgid or capabilities): the loader drops the agent, and it is "
			       "not recorded";
		else if (n >= (long)sizeof(ElfW(Ehdr)) && !memcmp(head, ELFMAG, SELFMAG))
			what = problem_of_elf(head, (size_t)n);
		TORSH_SYS(SYS_close, fd, 0, 0, 0, 0, 0);
		if (what) {
			torsh_text_put(problem, found.bytes);
			torsh_text_put(problem, what);
		}
	}
}
