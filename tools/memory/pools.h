/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A program's own pools of memory, as it describes them by NVTX's memory extension: each pool's
 * account, and the regions that it still has at the end.
 */
#ifndef TORSH_MEMORY_POOLS_H
#define TORSH_MEMORY_POOLS_H

#include "tools/base/containers/hash_map.h"
#include "tools/timeline/prepass/prepass.h"

struct pool_region {
	const char *name; /* NULL: none */
	uint64_t address, bytes;
	size_t pool;
	bool is_live;
};

struct memory_pool {
	const struct recorded_process *process;
	const char *name, *domain; /* NULL: none; no name either: the whole address space */
	uint64_t address, bytes; /* 0: the whole address space */
	uint64_t n_registered,
		n_ended; /* regions, of which ended by the program: one by one, or all */
	uint64_t n_live, live_bytes, peak_bytes, peak_ns, total_bytes;
	size_t first_live; /* no region before this one is live */
	bool is_ended;
};

struct pools {
	struct memory_pool *items;
	size_t n, n_room;
	struct pool_region *regions; /* all that there were */
	size_t n_regions, regions_room;
	uint64_t n_unknown; /* changes of a pool or a region that is not there */
	struct hash_map by_heap, by_address; /* of a process -> index */
};

/* Read the pre-pass's processes. Returns 0 or -errno. */
int torsh_pools_find(struct pools *pools, const struct recording *recording,
		     const struct prepass *prepass);

/* Free the pools. */
void torsh_pools_free(struct pools *pools);

#endif
