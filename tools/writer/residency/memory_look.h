/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A look at the memory of a process: its areas, their pages and its threads at one moment. Which
 * blocks were live then is added later, when all events up to that moment are folded; the process
 * may have ended by then.
 */
#ifndef TORSH_WRITER_RESIDENCY_MEMORY_LOOK_H
#define TORSH_WRITER_RESIDENCY_MEMORY_LOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/writer/input/process_info.h"
#include "tools/writer/reachability/image/memory_areas.h"
#include "tools/writer/reachability/image/memory_reader.h"
#include "tools/writer/residency/page_runs.h"
#include "tools/writer/residency/thread_names.h"

struct target;

/* The anonymous pages of an area that are in memory. */
struct looked_pages {
	uint32_t first, n; /* in the runs */
	uint64_t bytes; /* of these pages */
	uint64_t expected_bytes; /* that there were by smaps; 0: they were not looked for */
};

struct memory_look {
	struct memory_areas areas;
	struct looked_pages *pages; /* by area */
	struct page_runs runs;
	struct thread_names threads;
	struct memory_reader reader;
	struct process_status status;
};

/*
 * Look at a process. with_files: also at pages of private files that it has changed. Returns 0, or
 * -errno with nothing to free.
 */
int torsh_memory_look(struct memory_look *look, const struct target *target, bool with_files);

/*
 * Returns whether memory moved while it was looked at: the kernel shows one area after the other,
 * and what moves from one to another is counted twice, or not at all. after_bytes: what was
 * resident right after the look; 0: the process had ended.
 */
bool torsh_memory_look_is_torn(const struct memory_look *look, uint64_t after_bytes);

/* Free the look. */
void torsh_memory_look_free(struct memory_look *look);

#endif
