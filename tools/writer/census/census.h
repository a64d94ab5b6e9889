/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * tools/writer/census counts the small objects of CPython where most memory is in use, by type and
 * size. Read this file first; census_watch.h decides when.
 *
 * A census reads the pools of CPython's allocator, from outside and while the process runs: it is
 * of no single moment but of the time that it took. A pool that changed while it was read has a
 * list of free blocks that doesn't fit: such pools are left out, and counted.
 */
#ifndef TORSH_WRITER_CENSUS_CENSUS_H
#define TORSH_WRITER_CENSUS_CENSUS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/writer/reachability/heap_ranges.h"

#define CENSUS_ROWS_MAX 400u

/* Objects of a type and a size. */
struct census_row {
	uint32_t type; /* number + 1 in the census's names; 0: blocks that begin with no object */
	uint32_t block_bytes;
	uint64_t objects;
};

struct census {
	uint64_t begin_ns, end_ns; /* session time */
	uint64_t heap_begin_bytes, heap_end_bytes; /* of the live heap, as folded then */
	uint64_t level_bytes; /* of the heap and the interpreter's mappings, when it began */
	uint64_t pool_bytes; /* of pools, in use or free */
	uint64_t blocks, objects, bytes; /* in use; those that begin with an object; of blocks */
	uint64_t pools_changed; /* that were left out */
	uint64_t cpu_ns;
	char **names;
	uint32_t n_names;
	struct census_row *rows; /* those with most bytes first, at most CENSUS_ROWS_MAX */
	uint32_t n_rows;
};

/*
 * Count what is in the pools of these mappings; what concerns time and the heap is the caller's.
 * Returns 0, or -errno with nothing to free: -ECANCELED once is_cancelled is set.
 */
int torsh_census_take(struct census *census, pid_t pid, const struct heap_ranges *maps,
		      const _Atomic bool *is_cancelled);

/* Free what it has. */
void torsh_census_free(struct census *census);

#endif
