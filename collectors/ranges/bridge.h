/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Forwards ranges and marks to consumers of the other protocol: a range by torsh.h or ITT to an
 * NVTX consumer, one by torsh.h or NVTX to an ITT consumer. The agent records only the original
 * call. Ranges with numbers go only to ITT, which accepts numbers of the agent.
 */
#ifndef TORSH_COLLECTORS_RANGES_BRIDGE_H
#define TORSH_COLLECTORS_RANGES_BRIDGE_H

#include <stdbool.h>

#include "shim/ranges/itt.h"
#include "shim/ranges/nvtx.h"
#include "shim/ranges/ranges.h"

static inline bool torsh_bridge_is_needed(void)
{
	return torsh_nvtx_has_consumer | torsh_itt_has_consumer;
}

/* Forward a range or a mark. The caller holds no producer: a consumer may do anything. */
void torsh_bridge_push(const struct range_attributes *range);

/* Forward the end of the innermost range of the domain on this thread. */
void torsh_bridge_pop(struct range_text domain, enum range_source source);

/* Forward a mark. */
void torsh_bridge_mark(const struct range_attributes *range);

/* Forward a range that any thread may end, to ITT only. */
void torsh_bridge_start(const struct range_attributes *range, uint64_t number);

/* Forward the end of the range with this number. */
void torsh_bridge_end(uint64_t number);

/* Forward the begin of a step, with which the one before ends: ranges of no thread. */
void torsh_bridge_step(const char *name);

#endif
