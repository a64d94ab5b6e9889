/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the agent records of PyTorch, as ranges of another tool for NVTX or ITT, where
 * TORSH_PROFILER_FORWARD is set: each kind in a domain of its own. Only what is recorded is
 * forwarded, and the agent records none of it again.
 */
#ifndef TORSH_COLLECTORS_RANGES_FORWARD_H
#define TORSH_COLLECTORS_RANGES_FORWARD_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/process/config.h"
#include "shim/ranges/ranges.h"

#define FORWARD_DEPTH 128u /* open operators of a thread; deeper ones are not forwarded */

/* Of one thread: the operators whose ranges are open. */
struct forwarded {
	uint64_t records[FORWARD_DEPTH];
	uint32_t n;
};

static inline bool torsh_forward_wants(enum forward_kind kind)
{
	return __builtin_expect(torsh_config.forward & kind, 0);
}

/*
 * Whether a tool listens, which is opened at the first call. As of all these functions, the caller
 * holds no producer: a tool may do anything. Any thread.
 */
bool torsh_forward_is_heard(void);

/* An operator of this thread began, and its record. */
void torsh_forward_operator(struct forwarded *forwarded, uint64_t record, const char *name);

/*
 * A record ended, perhaps one of another thread: that one's range ends with the operator around it.
 */
void torsh_forward_operator_end(struct forwarded *forwarded, uint64_t record);

/* A module of this thread began or ended. */
void torsh_forward_module(uint32_t label);
void torsh_forward_module_end(void);

/*
 * A step begins, and the one before ends. by: enum step_source; steps of a lesser source than an
 * earlier one's don't count. name: NULL or its number's.
 */
void torsh_forward_step(uint32_t by, const char *name, uint64_t number);

#endif
