/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reads the roots of a stopped process, and then its blocks, into a graph. Roots are what the
 * program can reach without a block: registers, stacks above their pointers, data of modules,
 * thread-local storage, and all other private memory that it can read and that is no allocator's.
 */
#ifndef TORSH_WRITER_REACHABILITY_ROOT_SCAN_H
#define TORSH_WRITER_REACHABILITY_ROOT_SCAN_H

#include "tools/writer/reachability/heap_ranges.h"
#include "tools/writer/reachability/image/memory_areas.h"
#include "tools/writer/reachability/image/memory_reader.h"
#include "tools/writer/reachability/object_begins.h"
#include "tools/writer/reachability/pointer_graph.h"
#include "tools/writer/reachability/image/stopped_threads.h"
#include "tools/writer/reachability/python/python_heap.h"

struct scan {
	struct memory_reader *reader;
	const struct memory_areas *areas;
	const struct heap_ranges *heap;
	const struct stopped_threads *threads;
	struct pointer_graph *graph;
	struct python_heap *python;
	struct object_begins *begins; /* used by torsh_scan */
	void (*go_on)(void *context); /* called now and then */
	void *context;
};

/* Fill the graph. Returns 0, or -errno if the process is gone. */
int torsh_scan(struct scan *scan);

#endif
