/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the writer knows of a process at one moment: its live blocks, what mapped its memory, where
 * its threads are. It is taken while the process is held, and from then on is independent of it: a
 * judgement may be made of it on another thread.
 */
#ifndef TORSH_WRITER_REACHABILITY_JUDGED_MOMENT_H
#define TORSH_WRITER_REACHABILITY_JUDGED_MOMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/base/containers/live_table.h"
#include "tools/writer/reachability/heap_ranges.h"
#include "tools/writer/reachability/image/stopped_threads.h"

struct target;

#define MOMENT_ADDRESS_BITS 48

/* There may be tens of millions. */
struct moment_block {
	uint64_t address : MOMENT_ADDRESS_BITS, site_low : 16;
	uint64_t size : 48, site_high : 16;
	uint64_t stamp : 56; /* since the process's first */
	uint64_t is_old : 1; /* from before the exit began */
};

_Static_assert(sizeof(struct moment_block) == 24, "blocks of a moment are small");
_Static_assert(LIVE_SIZE_MAX >> 48 == 0 && LIVE_STAMP_MAX >> 56 == 0, "live blocks fit");

static inline uint32_t torsh_moment_block_site(const struct moment_block *block)
{
	return (uint32_t)block->site_high << 16 | (uint32_t)block->site_low;
}

/* The last read of a tensor's memory by an operator. */
struct moment_read {
	uint64_t address, stamp;
	uint32_t operator, step; /* as in struct tensor_read */
};

/* Memory that a module of the program mapped. */
struct mapped_range {
	uint64_t begin, end;
	char *mapper; /* the module's path; the moment owns it */
};

struct judged_moment {
	pid_t process;
	pid_t pid; /* whose memory this is: the process's, or its copy's */
	uint64_t at_ns; /* session time */
	uint64_t stamp; /* blocks from then on are younger */
	struct stopped_threads threads;
	struct moment_block *blocks; /* in any order */
	uint64_t n_blocks;
	struct moment_read *reads; /* likewise */
	uint32_t n_reads;
	bool has_reads; /* inputs of operators were recorded, all of them */
	uint32_t step; /* number of the current one + 1; see step_marks.h */
	uint32_t n_sites;
	uint32_t n_python_max; /* blocks of CPython's allocator, for which there is memory */
	struct heap_ranges allocator_maps, python_maps;
	struct mapped_range *mapped; /* in the order of addresses */
	uint32_t n_mapped;
	size_t mapped_capacity;
};

/*
 * Take it: the target's threads are stopped, and its events folded. exit_stamp: stamp of the moment
 * at which its exit began; 0: it has not, no block is old.
 */
void torsh_judged_moment_take(struct judged_moment *moment, const struct target *target,
			      const struct stopped_threads *threads, uint64_t exit_stamp);

/* Returns the path of the module that mapped the memory at the address; NULL: not known. */
const char *torsh_judged_moment_mapper(const struct judged_moment *moment, uint64_t address);

/* Free the blocks, of which a judgement needs nothing more. */
void torsh_judged_moment_free_blocks(struct judged_moment *moment);

/* Free it. */
void torsh_judged_moment_free(struct judged_moment *moment);

#endif
