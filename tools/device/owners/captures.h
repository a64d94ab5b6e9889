/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which memory of a framework's allocator is in private pools of CUDA graphs: what it reserved or
 * gave out while a stream was captured. A thread that allocates meanwhile for other work is not
 * told apart.
 */
#ifndef TORSH_DEVICE_OWNERS_CAPTURES_H
#define TORSH_DEVICE_OWNERS_CAPTURES_H

#include "tools/device/memory/device_blocks.h"
#include "tools/recording/recording.h"

struct captures {
	uint64_t n_open;
	bool *is_private; /* by ordinals of blocks */
	size_t n, n_room;
};

/* Pass each event, after the blocks have taken it. */
void torsh_captures_see(struct captures *captures, const struct recorded_process *process,
			const struct device_blocks *blocks, const struct event *event);

/* Free them. */
void torsh_captures_free(struct captures *captures);

#endif
