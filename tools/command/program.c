/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/command/program.h. */
#include "tools/command/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tools/die.h"

#define INTERPRETERS_MAX 5 /* as many #! lines as the kernel follows */
#define LINE_BYTES 256
#define HEADERS_MAX 256

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

static int refuse(char *reason, size_t n_reason, const char *path, const char *why)
{
	snprintf(reason, n_reason, "%s %s", path, why);
	return -EINVAL;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_loader(const char *path)
{
	const char *name = base_name(path);

	return strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld-2.", 5) == 0 || strcmp(name, "ld.so") == 0;
}

/* The program headers name the loader; a static program has none. interpreter "" then. */
static bool read_interpreter(int fd, const ElfW(Ehdr) * header, char *interpreter, size_t n_interpreter)
{
	ElfW(Phdr) segment;

	*interpreter = '\0';
	for (int i = 0; i < header->e_phnum && i < HEADERS_MAX; i++) {
		off_t at = (off_t)(header->e_phoff + (ElfW(Off))i * sizeof(segment));
		ssize_t n;

		if (pread(fd, &segment, sizeof(segment), at) != (ssize_t)sizeof(segment))
			return false;
		if (segment.p_type != PT_INTERP)
			continue;
		n = pread(fd, interpreter, n_interpreter - 1, (off_t)segment.p_offset);
		if (n <= 0)
			return false;
		interpreter[n] = '\0';
		if (segment.p_filesz < n_interpreter)
			interpreter[segment.p_filesz] = '\0';
		return true;
	}
	return true;
}

/* What this program runs on itself. */
static bool is_own_machine(const ElfW(Ehdr) * header)
{
	ElfW(Ehdr) own;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	bool is_same = true;

	if (fd < 0)
		return true;
	if (read(fd, &own, sizeof(own)) == (ssize_t)sizeof(own))
		is_same = header->e_machine == own.e_machine && memcmp(header->e_ident, own.e_ident, EI_VERSION) == 0;
	close(fd);
	return is_same;
}

static int check_elf(int fd, const char *path, char *reason, size_t n_reason)
{
	char interpreter[LINE_BYTES];
	ElfW(Ehdr) header;

	if (pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header))
		return refuse(reason, n_reason, path, "is cut off: it ends within its ELF header");
	if (!is_own_machine(&header))
		return refuse(reason, n_reason, path,
			      "is made for another kind of machine than the agent: it can't be loaded there");
	if (!read_interpreter(fd, &header, interpreter, sizeof(interpreter)))
		return refuse(reason, n_reason, path, "has program headers that can't be read");
	if (!*interpreter && !is_loader(path))
		return refuse(reason, n_reason, path,
			      "is linked statically: no loader runs that could preload the agent, so nothing "
			      "would be recorded. Link it dynamically");
	if (*interpreter && strncmp(base_name(interpreter), "ld-linux-", 9) &&
	    strncmp(base_name(interpreter), "ld-lsb-", 7))
		return refuse(reason, n_reason, path,
			      "runs on another C library than the GNU one, for which the agent is made: it can't be "
			      "loaded there");
	return 0;
}

/* The loader drops LD_PRELOAD for programs that give their user more rights. */
static int check_rights(int fd, const char *path, char *reason, size_t n_reason)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return refuse(reason, n_reason, path, strerror(errno));
	if (S_ISDIR(status.st_mode))
		return refuse(reason, n_reason, path, "is a directory");
	if (status.st_mode & S_ISUID)
		return refuse(reason, n_reason, path,
			      "is setuid: the loader ignores LD_PRELOAD there. Run a copy without that bit");
	if ((status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
		return refuse(reason, n_reason, path,
			      "is setgid: the loader ignores LD_PRELOAD there. Run a copy without that bit");
	if (fgetxattr(fd, "security.capability", NULL, 0) > 0)
		return refuse(reason, n_reason, path,
			      "has file capabilities: the loader ignores LD_PRELOAD there. Run a copy without them");
	return 0;
}

/* "#! /path argument": the path. Returns false where there is none. */
static bool parse_script(char *line, char **interpreter)
{
	line[strcspn(line, "\n")] = '\0';
	line += 2;
	line += strspn(line, " \t");
	line[strcspn(line, " \t\r")] = '\0';
	*interpreter = line;
	return *line;
}

/* Returns 1 with the interpreter's path in line's place, 0 when it is fine, or -EINVAL. */
static int check_file(const char *path, char *line, char **interpreter, char *reason, size_t n_reason)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc;
	ssize_t n;

	/* What may be run but not read can't be checked; it is rare, and the agent says itself when it is not in. */
	if (fd < 0)
		return errno == EACCES && access(path, X_OK) == 0 ? 0 : refuse(reason, n_reason, path, strerror(errno));
	n = pread(fd, line, LINE_BYTES - 1, 0);
	line[n > 0 ? n : 0] = '\0';
	if (n >= 4 && memcmp(line, ELFMAG, SELFMAG) == 0) {
		rc = check_rights(fd, path, reason, n_reason);
		if (rc == 0)
			rc = check_elf(fd, path, reason, n_reason);
	} else if (n >= 2 && memcmp(line, "#!", 2) == 0) {
		rc = parse_script(line, interpreter)
			     ? 1
			     : refuse(reason, n_reason, path, "has a #! line that names no interpreter");
	} else {
		struct stat status;
		bool is_directory = fstat(fd, &status) == 0 && S_ISDIR(status.st_mode);

		rc = refuse(reason, n_reason, path,
			    is_directory ? "is a directory" : "is neither an ELF program nor a script with a #! line");
	}
	close(fd);
	return rc;
}

int torsh_program_check(const char *path, char *reason, size_t n_reason)
{
	char lines[2][LINE_BYTES];

	for (int i = 0; i < INTERPRETERS_MAX; i++) {
		char *interpreter;
		int rc = check_file(path, lines[i % 2], &interpreter, reason, n_reason);

		if (rc <= 0)
			return rc;
		path = interpreter;
	}
	return refuse(reason, n_reason, path, "is the end of too long a chain of #! lines");
}
