/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The address space of another process as the kernel has it: /proc/PID/smaps, in the order of
 * addresses.
 */
#ifndef TORSH_WRITER_REACHABILITY_IMAGE_MEMORY_AREAS_H
#define TORSH_WRITER_REACHABILITY_IMAGE_MEMORY_AREAS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct memory_area {
	uint64_t begin, end;
	bool is_readable, is_writable;
	bool is_shared; /* MAP_SHARED */
	bool is_file; /* of a file, or of a memfd */
	bool is_brk_heap; /* what brk grows */
	bool is_device; /* of a file that is not regular: reading it may do something */
	/* of the agent: its file, or pages that a forked child gets zeroed */
	bool is_agents;
	/* the process has touched pages of it, and changed some if it is of a file */
	bool has_own_pages;
	/* of the file, also of data of a module that are not in it; NULL: none. The areas own it */
	char *path;
	uint64_t file_offset; /* of begin */
	bool is_executable;
	bool is_stack; /* the first thread's */
	bool is_kernels; /* of the kernel's own: "[vdso]" and others */
	bool is_arena; /* begins like an arena of glibc's; only a look at memory finds out */
	uint64_t rss_bytes, pss_bytes, swap_bytes;
	uint64_t own_bytes; /* of rss_bytes: anonymous */
	uint64_t huge_bytes; /* of rss_bytes: in huge pages */
};

struct memory_areas {
	struct memory_area *items;
	uint32_t n;
	size_t capacity;
};

/*
 * Read the areas of the process; agent_file is the end of the agent's path. Returns 0, or -errno
 * with nothing to free.
 */
int torsh_memory_areas_read(struct memory_areas *areas, pid_t pid, const char *agent_file);

/* Free the areas. */
void torsh_memory_areas_free(struct memory_areas *areas);

/* Returns the area that contains the address, or NULL. */
const struct memory_area *torsh_memory_areas_find(const struct memory_areas *areas,
						  uint64_t address);

/* Add what a line of the file has: an area's own line, or one of those below it. */
void torsh_memory_areas_add_line(struct memory_areas *areas, const char *line,
				 const char *agent_file);

#endif
