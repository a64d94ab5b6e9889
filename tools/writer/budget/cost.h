/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What recording costs in memory of the writer's own: reports say it. The drain thread's. */
#ifndef TORSH_WRITER_BUDGET_COST_H
#define TORSH_WRITER_BUDGET_COST_H

#include "tools/writer/input/target.h"

/* At the moment of those looked at when most was resident. */
struct cost {
	/* that no file and no other process shares; 0: could not be read */
	uint64_t resident_bytes;
	uint64_t live_blocks, live_bytes; /* of all targets: how many, and what their tables take */
	uint64_t stacks;
};

void torsh_cost_update(struct cost *cost, struct target *const *targets, uint32_t n);

#endif
