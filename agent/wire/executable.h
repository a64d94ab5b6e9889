/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Can the agent be preloaded into a program? Decided before it is executed, as the kernel and the
 * loader will decide: by the agent for what its process executes, by `torsh run` for what it is
 * given. Pure: files and rights are read by the caller.
 */
#ifndef TORSH_AGENT_WIRE_EXECUTABLE_H
#define TORSH_AGENT_WIRE_EXECUTABLE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/wire/event.h"

/* #! lines, each of which leads to the next: the kernel follows no more */
#define EXECUTABLE_SCRIPTS_MAX 5u
#define EXECUTABLE_LINE_BYTES \
	256u /* in which the kernel looks for the end of a #! line; a loader's path has room too */
#define EXECUTABLE_CAPABILITY_BYTES 24u /* "security.capability" is no longer */

/*
 * What decides whether its process gets more rights than the user has: the loader preloads nothing
 * into it then.
 */
struct executable_rights {
	uint32_t mode, owner, group; /* of the file: st_mode, st_uid, st_gid */
	unsigned char capabilities[EXECUTABLE_CAPABILITY_BYTES]; /* its "security.capability" */
	long n_capabilities; /* bytes; 0 or -errno: it has none */
	bool is_nosuid; /* its file system was mounted so */
};

/* Who executes it. */
struct executable_caller {
	uint32_t user, effective_user, group, effective_group;
	bool has_no_new_privileges; /* PR_GET_NO_NEW_PRIVS */
};

/* How files are read, one at a time. The caller's own data stands around it. */
struct executable_source {
	/* Open the file to which n_scripts #! lines led; a descriptor, or -errno. */
	long (*open)(struct executable_source *source, const char *path, unsigned n_scripts);
	/* As pread: bytes, or -errno. */
	long (*read)(long fd, void *out, size_t n_bytes, uint64_t offset);
	/* 0 or -errno. */
	long (*read_rights)(struct executable_source *source, long fd,
			    struct executable_rights *rights);
	void (*close)(long fd);
	struct executable_caller caller;
	/* Too much for the stack of a signal handler. */
	struct executable_rights rights;
	ElfW(Ehdr) header;
	ElfW(Phdr) segment;
	char line[EXECUTABLE_LINE_BYTES + 1];
};

/*
 * Why the program at path can't be followed, an enum program_problem; PROGRAM_FINE when it can. It
 * is that of the file that was opened last. Negative where no claim is made, for it won't start or
 * can't be looked at: -ENOEXEC is neither an ELF program nor a script, or is cut off; -ELOOP is the
 * end of too many #! lines; others come from source. Whether the agent's file is there is the
 * caller's to look at (PROGRAM_WITHOUT_AGENT).
 */
long torsh_executable_inspect(struct executable_source *source, const char *path);

#endif
