/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Whether blocks can still be reached, with the meanings of Valgrind's memcheck: a program can use
 * a block, or free it, if it finds a pointer to it.
 */
#ifndef TORSH_WRITER_REACHABILITY_VERDICTS_H
#define TORSH_WRITER_REACHABILITY_VERDICTS_H

#include <stdint.h>

#include "tools/writer/reachability/pointer_graph.h"

enum verdict {
	VERDICT_UNKNOWN, /* not judged */
	VERDICT_LOST, /* nothing points to it, but for blocks that were lost with it */
	VERDICT_INDIRECT, /* lost with another block, which points to it */
	VERDICT_POSSIBLE, /* each way to it takes a pointer to the inside of a block */
	VERDICT_REACHABLE,
	N_VERDICTS
};

/*
 * Returns the verdicts of the graph's blocks, an enum verdict each; the caller frees them. Of blocks
 * that only point to each other the one with the lowest address counts as lost, the others as lost
 * with it.
 */
uint8_t *torsh_verdicts(const struct pointer_graph *graph);

#endif
