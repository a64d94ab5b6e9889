/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Can the agent be preloaded into a program? Decided before it is executed, by the rules of the
 * kernel and the loader: by the agent for what its process executes, by `torsh run` for its
 * command. Pure: the caller reads files and rights.
 */
#ifndef TORSH_AGENT_WIRE_EXECUTABLE_H
#define TORSH_AGENT_WIRE_EXECUTABLE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/wire/event.h"

/* #! lines that lead to one another: the kernel follows no more */
#define EXECUTABLE_SCRIPTS_MAX 5u
/* The bytes in which the kernel looks for the end of a #! line; a loader's path fits too. */
#define EXECUTABLE_LINE_BYTES 256u
#define EXECUTABLE_CAPABILITY_BYTES 24u /* "security.capability" is at most this long */

/*
 * Decides whether the process gets more rights than the user has: the loader then preloads nothing.
 */
struct executable_rights {
	uint32_t mode, owner, group; /* of the file: st_mode, st_uid, st_gid */
	unsigned char capabilities[EXECUTABLE_CAPABILITY_BYTES]; /* its "security.capability" */
	long n_capabilities; /* bytes; 0 or -errno: it has none */
	bool is_nosuid; /* its file system is mounted with nosuid */
};

/* The process that executes it. */
struct executable_caller {
	uint32_t user, effective_user, group, effective_group;
	bool has_no_new_privileges; /* PR_GET_NO_NEW_PRIVS */
};

/* Callbacks that read files, one at a time. Embedded in a struct with the caller's own data. */
struct executable_source {
	/* Open the file reached through n_scripts #! lines. Returns a descriptor or -errno. */
	long (*open)(struct executable_source *source, const char *path, unsigned n_scripts);
	/* As pread: bytes, or -errno. */
	long (*read)(long fd, void *out, size_t n_bytes, uint64_t offset);
	/* 0 or -errno. */
	long (*read_rights)(struct executable_source *source, long fd,
			    struct executable_rights *rights);
	void (*close)(long fd);
	struct executable_caller caller;
	/* Too large for the stack of a signal handler. */
	struct executable_rights rights;
	ElfW(Ehdr) header;
	ElfW(Phdr) segment;
	char line[EXECUTABLE_LINE_BYTES + 1];
};

/*
 * Why the program at path can't be followed, an enum program_problem; PROGRAM_FINE if it can. The
 * result is for the file that was opened last. Negative if there is no result because it won't
 * start or can't be inspected: -ENOEXEC is neither an ELF program nor a script, or truncated;
 * -ELOOP too many #! lines; others come from source. The caller checks whether the agent's file
 * exists (PROGRAM_WITHOUT_AGENT).
 */
long torsh_executable_inspect(struct executable_source *source, const char *path);

#endif
