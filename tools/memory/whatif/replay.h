/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A trace run through the model of the caching allocator: its peaks, and where memory ran out. */
#ifndef TORSH_MEMORY_WHATIF_REPLAY_H
#define TORSH_MEMORY_WHATIF_REPLAY_H

#include "tools/memory/allocator/caching_allocator.h"
#include "tools/memory/whatif/memory_trace.h"

struct replay {
	struct tensor_sums peak;
	bool is_out_of_memory; /* the replay ended there: */
	uint32_t failed_block; /* the block that did not get its memory, by index */
	uint64_t missing_bytes; /* what the device lacked for it */
	struct tensor_sums at_failure;
};

/* Run the trace on a device of that capacity; 0: without bounds. */
struct replay torsh_replay(const struct memory_trace *trace,
			   const struct allocator_settings *settings, uint64_t capacity_bytes);

/*
 * Correct the sizes of the trace's blocks by the recorded run: where the model would give a block
 * of another size than was recorded, the recorded size was requested.
 */
void torsh_replay_fit(struct memory_trace *trace, const struct allocator_settings *settings);

/*
 * How far the replay is from what was recorded, as a share of the latter: the larger one of both
 * peaks' differences.
 */
double torsh_replay_difference(const struct replay *replay, const struct tensor_sums *recorded);

#endif
