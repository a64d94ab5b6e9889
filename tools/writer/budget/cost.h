/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The writer's own memory, which reports show. Owned by the drain thread. */
#ifndef TORSH_WRITER_BUDGET_COST_H
#define TORSH_WRITER_BUDGET_COST_H

#include "tools/writer/input/target.h"

/* Of the update at which most was resident. */
struct cost {
	/* that no file and no other process shares; 0: could not be read */
	uint64_t resident_bytes;
	uint64_t live_blocks, live_bytes; /* of all targets: how many, and what their tables take */
	uint64_t stacks;
};

/*
 * Read the writer's memory and the size of the targets' tables; keeps them where more is resident
 * than ever before.
 */
void torsh_cost_update(struct cost *cost, struct target *const *targets, uint32_t n);

#endif
