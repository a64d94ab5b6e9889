/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The address space that a process mapped with mmap, mremap, brk and shmat, by the stack that
 * mapped it, with its exact peak. A new mapping ends what it overlaps; lengths are rounded up to
 * pages as the kernel does. A mapping that mremap moves or grows belongs to the stack of the
 * mremap; one that it shrinks keeps its stack.
 */
#ifndef TORSH_WRITER_FOLD_MAPPINGS_H
#define TORSH_WRITER_FOLD_MAPPINGS_H

#include <stddef.h>

#include "agent/wire/event.h"
#include "tools/writer/fold/peak_tracker.h"
#include "tools/base/containers/address_ranges.h"
#include "tools/writer/fold/tables/site_index.h"

/* What was mapped at a site, as bits. The numbers are part of the recording's format. */
enum mapped_as {
	MAPPED_PRIVATE = 1, /* anonymous memory, and the program break */
	MAPPED_SHARED = 2, /* anonymous memory that children share */
	MAPPED_FILE = 4, /* a private mapping of a file */
	MAPPED_SHARED_FILE = 8,
	MAPPED_SYSTEM_V = 16 /* shared memory, by shmat */
};

#define MAP_PATH_UNKNOWN 0u
#define MAP_PATH_SEVERAL UINT32_MAX

struct map_site {
	struct site_usage live;
	uint32_t stack;
	uint32_t kinds; /* enum mapped_as */
	uint32_t path; /* of its files: index into paths + 1, or one of the above */
	uint64_t total_bytes; /* ever mapped */
};

/* A segment that shmat attached. */
struct map_segment {
	uint64_t start, end;
};

#define MAP_PATHS_MAX 256u /* files whose paths are looked up, per process */

struct mappings {
	struct address_ranges ranges;
	struct peak_tracker tracker;
	struct map_site *sites; /* [0]: the empty stack */
	uint32_t n_sites;
	size_t site_capacity;
	struct number_index site_index;
	uint64_t page_bytes;
	uint64_t maps, unmaps, advised_bytes;
	struct map_segment *segments;
	size_t n_segments, segment_capacity;
	char **paths; /* of files, each once */
	size_t n_paths, path_capacity;
	uint32_t n_looked_up;
	/*
	 * Returns the path of the file mapped at the address now, which the caller frees, or NULL.
	 * May be NULL.
	 */
	char *(*path_at)(void *context, uint64_t address);
	void *path_context;
};

/* Create an empty address space. */
void torsh_mappings_create(struct mappings *mappings);

/* Free it. */
void torsh_mappings_destroy(struct mappings *mappings);

/*
 * Fold an event MAP, UNMAP, REMAP, PROGRAM_BREAK or ADVISE; other events are ignored. Invalid
 * events, for example with a length beyond the address space, change nothing.
 */
void torsh_mappings_fold(struct mappings *mappings, const struct event *event, uint32_t stack);

#endif
