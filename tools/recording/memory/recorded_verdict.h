/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which blocks of a stack could be reached when they were judged. Part of recording.h. */
#ifndef TORSH_RECORDING_MEMORY_RECORDED_VERDICT_H
#define TORSH_RECORDING_MEMORY_RECORDED_VERDICT_H

#include <stdint.h>

/* Verdicts on blocks, numbered as in the recording: see Verdicts. */
enum block_class {
	BLOCKS_UNKNOWN, /* not judged */
	BLOCKS_LOST,
	BLOCKS_INDIRECT, /* lost with another block */
	BLOCKS_POSSIBLE, /* only pointers to their inside are left */
	BLOCKS_REACHABLE,
	BLOCKS_FREED_AT_EXIT, /* reachable when the exit began, and freed since */
	N_BLOCK_CLASSES
};

/* The blocks of a stack that are of one class: most stacks have one. */
struct recorded_verdict {
	uint32_t stack;
	uint32_t block_class : 3; /* enum block_class */
	uint32_t next : 29; /* number + 1 of the stack's next one in `further`; 0: none */
	uint64_t blocks, bytes;
};

_Static_assert(N_BLOCK_CLASSES <= 8, "a verdict's class has 3 bits");

#endif
