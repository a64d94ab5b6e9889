/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The writer's own resource usage, which reports show. Owned by the drain thread. */
#ifndef TORSH_WRITER_BUDGET_COST_H
#define TORSH_WRITER_BUDGET_COST_H

#include "tools/writer/input/target.h"

/* All values are from the update with the largest resident size. */
struct cost {
	/* private (not shared, not file-backed); 0: could not be read */
	uint64_t resident_bytes;
	uint64_t live_blocks, live_bytes; /* of all targets, and the size of their block tables */
	uint64_t stacks;
};

/*
 * Sample the writer's memory and the sizes of the tables, of targets and of their programs; the
 * sample replaces the stored one if its resident size is larger.
 */
void torsh_cost_update(struct cost *cost, struct target *const *targets, uint32_t n,
		       const struct program_tables_set *tables);

#endif
