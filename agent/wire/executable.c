/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "agent/wire/executable.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#define OWN_LOADER "ld-linux-x86-64.so.2"
#else
#define OWN_MACHINE EM_AARCH64
#define OWN_LOADER "ld-linux-aarch64.so.1"
#endif

#define HEADERS_MAX (65536u / sizeof(ElfW(Phdr))) /* the kernel refuses more */
/* flags, then the first half of what is permitted, both little endian */
#define CAPABILITY_HEAD_BYTES 8u
#define CAPABILITY_EFFECTIVE 1u
#define DYNAMIC_MAX_BYTES 65536u /* of a dynamic section that is looked at */
#define NEEDED_NAME_BYTES 16u

enum loader { LOADER_NONE, LOADER_OWN, LOADER_OTHER };

static bool begins_with(const char *name, const char *start)
{
	return strncmp(name, start, strlen(start)) == 0;
}

/* The loader by its file name: each C library's has another name. */
static enum loader loader_named(const char *path)
{
	/*
	 * GNU's loader: its usual name, that of the Linux Standard Base, the file's name in old
	 * versions, and Debian's command.
	 */
	static const char *const own[] = {OWN_LOADER, "ld-lsb-", "ld-2.", "ld.so"};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		if (begins_with(name, own[i]))
			return LOADER_OWN;
	return begins_with(name, "ld-") || strcmp(name, "libc.so") == 0 ? LOADER_OTHER
									: LOADER_NONE;
}

/*
 * The loader named in the program headers. A program without one is static, unless it is a loader
 * itself, run as a command. Returns an enum loader or -ENOEXEC.
 */
static long find_loader(struct executable_source *source, long fd, const char *path)
{
	ElfW(Phdr) *segment = &source->segment;

	for (unsigned i = 0; i < source->header.e_phnum; i++) {
		enum loader loader;
		long n;

		if (source->read(fd, segment, sizeof(*segment),
				 source->header.e_phoff + i * sizeof(*segment)) !=
		    (long)sizeof(*segment))
			return -ENOEXEC;
		if (segment->p_type != PT_INTERP)
			continue;
		if (segment->p_filesz < 2 || segment->p_filesz > EXECUTABLE_LINE_BYTES)
			return -ENOEXEC;
		n = source->read(fd, source->line, segment->p_filesz, segment->p_offset);
		if (n != (long)segment->p_filesz)
			return -ENOEXEC;
		source->line[n] = '\0';
		loader = loader_named(source->line);
		return loader == LOADER_NONE ? LOADER_OTHER : loader;
	}
	return loader_named(path);
}

static bool grants_capabilities(const struct executable_rights *rights)
{
	uint32_t head[CAPABILITY_HEAD_BYTES / sizeof(uint32_t)];

	if (rights->n_capabilities < (long)CAPABILITY_HEAD_BYTES)
		return false;
	memcpy(head, rights->capabilities, sizeof(head));
	return (head[0] & CAPABILITY_EFFECTIVE) || head[1];
}

/*
 * Whether the kernel sets AT_SECURE (cap_bprm_creds_from_file): the process will have different
 * effective and real ids, through the file or already in the caller, or gets capabilities that the
 * user lacks.
 */
static bool gains_privileges(const struct executable_caller *caller,
			     const struct executable_rights *rights)
{
	bool has_effect = !rights->is_nosuid && !caller->has_no_new_privileges;
	uint32_t user = caller->effective_user, group = caller->effective_group;

	if (has_effect && rights->mode & S_ISUID)
		user = rights->owner;
	if (has_effect && (rights->mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
		group = rights->group;
	return user != caller->user || group != caller->group ||
	       (caller->user != 0 && !rights->is_nosuid && grants_capabilities(rights));
}

/* ---- sanitizers ------------------------------------------------------------------------------ */

/* Where the first library that a program needs is named; offsets in the file. */
struct first_needed {
	uint64_t dynamic, end; /* of the dynamic section */
	uint64_t shift; /* of addresses in the first segment to offsets: there are the names */
	bool has_segment;
};

static void find_dynamic(struct executable_source *source, long fd, struct first_needed *found)
{
	ElfW(Phdr) *segment = &source->segment;

	for (unsigned i = 0; i < source->header.e_phnum && !found->dynamic; i++) {
		if (source->read(fd, segment, sizeof(*segment),
				 source->header.e_phoff + i * sizeof(*segment)) !=
		    (long)sizeof(*segment))
			return;
		if (segment->p_type == PT_LOAD && !found->has_segment) {
			found->shift = segment->p_vaddr - segment->p_offset;
			found->has_segment = true;
		}
		if (segment->p_type == PT_DYNAMIC) {
			found->dynamic = segment->p_offset;
			found->end = segment->p_offset + (segment->p_filesz < DYNAMIC_MAX_BYTES
								  ? segment->p_filesz
								  : DYNAMIC_MAX_BYTES);
		}
	}
}

/* Returns where its name begins, 0: it needs none, or the file is not understood. */
static uint64_t find_first_name(struct executable_source *source, long fd)
{
	struct first_needed found = {0};
	uint64_t names = 0, name = 0;
	bool is_needed = false;
	long n = 1;

	find_dynamic(source, fd, &found);
	for (uint64_t at = found.dynamic; at < found.end && !(names && is_needed) && n > 0;
	     at += EXECUTABLE_LINE_BYTES) {
		ElfW(Dyn) entry;

		n = source->read(fd, source->line, EXECUTABLE_LINE_BYTES, at);
		for (long i = 0; i + (long)sizeof(entry) <= n; i += (long)sizeof(entry)) {
			memcpy(&entry, &source->line[i], sizeof(entry));
			if (entry.d_tag == DT_NULL)
				n = 0;
			if (entry.d_tag == DT_STRTAB)
				names = entry.d_un.d_ptr - found.shift;
			if (entry.d_tag != DT_NEEDED || is_needed)
				continue;
			name = entry.d_un.d_val;
			is_needed = true;
		}
	}
	return names && is_needed ? names + name : 0;
}

/* GCC has the runtime of a sanitizer before all other libraries: there it insists to be. */
static bool is_sanitized(struct executable_source *source, long fd)
{
	static const char runtimes[][NEEDED_NAME_BYTES] = {"libasan.so", "libtsan.so", "liblsan.so",
							   "libhwasan.so"};
	uint64_t at = find_first_name(source, fd);
	long n = at ? source->read(fd, source->line, NEEDED_NAME_BYTES, at) : 0;

	if (n <= 0)
		return false;
	source->line[n] = '\0';
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(*runtimes); i++) {
		if (begins_with(source->line, runtimes[i]))
			return true;
	}
	return false;
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool is_executable(const ElfW(Ehdr) * header)
{
	return (header->e_type == ET_EXEC || header->e_type == ET_DYN) &&
	       header->e_phentsize == sizeof(ElfW(Phdr)) && header->e_phnum <= HEADERS_MAX;
}

static long inspect_elf(struct executable_source *source, long fd, const char *path)
{
	const ElfW(Ehdr) *header = &source->header;
	long loader, rc;

	if (source->read(fd, &source->header, sizeof(*header), 0) != (long)sizeof(*header))
		return -ENOEXEC;
	if (header->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
	    header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_machine != OWN_MACHINE)
		return PROGRAM_FOREIGN;
	if (!is_executable(header))
		return -ENOEXEC;
	loader = find_loader(source, fd, path);
	if (loader < 0)
		return loader;
	if (loader == LOADER_OTHER)
		return PROGRAM_OTHER_LIBC;
	source->rights = (struct executable_rights){0};
	rc = source->read_rights(source, fd, &source->rights);
	if (rc < 0)
		return rc;
	if (gains_privileges(&source->caller, &source->rights))
		return PROGRAM_PRIVILEGED;
	if (loader == LOADER_NONE)
		return PROGRAM_STATIC;
	return is_sanitized(source, fd) ? PROGRAM_SANITIZED : PROGRAM_FINE;
}

/*
 * Parse "#!INTERPRETER ARGUMENT": moves the path to the front of line, as the kernel reads it
 * (fs/binfmt_script.c). false: there is none, or its path ends outside of what the kernel reads.
 */
static bool read_interpreter(char *line, size_t n)
{
	size_t end = strcspn(line, "\n"), at = 2, length;

	at += strspn(line + at, " \t");
	length = strcspn(line + at, " \t\n");
	if (length == 0 || (end == n && n == EXECUTABLE_LINE_BYTES && at + length == n))
		return false;
	memmove(line, line + at, length);
	line[length] = '\0';
	return true;
}

enum { LEADS_ON = N_PROGRAM_PROBLEMS };

/*
 * Returns LEADS_ON with the interpreter's path in source->line, or the result for an ELF program.
 * Not inlined: the stack may be a small one, and this isn't on it while files are searched.
 */
static __attribute__((noinline)) long inspect_file(struct executable_source *source, long fd,
						   const char *path)
{
	char magic[SELFMAG];
	long n = source->read(fd, magic, sizeof(magic), 0);

	if (n < 0)
		return n;
	if (n == SELFMAG && memcmp(magic, ELFMAG, SELFMAG) == 0)
		return inspect_elf(source, fd, path);
	if (n < 2 || magic[0] != '#' || magic[1] != '!')
		return -ENOEXEC;
	n = source->read(fd, source->line, EXECUTABLE_LINE_BYTES, 0);
	if (n < 2)
		return n < 0 ? n : -ENOEXEC;
	source->line[n] = '\0';
	return read_interpreter(source->line, strlen(source->line)) ? LEADS_ON : -ENOEXEC;
}

long torsh_executable_inspect(struct executable_source *source, const char *path)
{
	for (unsigned i = 0; i <= EXECUTABLE_SCRIPTS_MAX; i++) {
		long fd = source->open(source, path, i), found;

		if (fd < 0)
			return fd;
		found = inspect_file(source, fd, path);
		source->close(fd);
		if (found != LEADS_ON)
			return found;
		path = source->line;
	}
	return -ELOOP;
}
