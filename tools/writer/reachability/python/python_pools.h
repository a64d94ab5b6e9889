/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Finds the pools of CPython's allocator in what the interpreter mapped. */
#ifndef TORSH_WRITER_REACHABILITY_PYTHON_PYTHON_POOLS_H
#define TORSH_WRITER_REACHABILITY_PYTHON_PYTHON_POOLS_H

#include "tools/writer/reachability/heap_ranges.h"
#include "tools/writer/reachability/python/pymalloc_pools.h"

struct python_pools {
	/* a pool, and its n first words: those behind were never written */
	void (*take)(void *context, const struct pymalloc_pool *pool, const uint64_t *words,
		     size_t n);
	void *context;
	/* what begins as a pool does and is none: of a process that runs, it changed meanwhile */
	uint64_t n_refused;
};

/* Pass the pools of one mapping. Returns 0, or -errno if the process is gone. */
int torsh_python_pools_visit(struct python_pools *pools, const struct heap_range *map,
			     struct memory_reader *reader);

#endif
