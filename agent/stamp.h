/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Readings of the time stamp counter that are ordered as causes are: an event that saw the effect of another thread's
 * event gets the later one.
 *
 * The counter may be read before earlier loads have their values: a thread that takes a block out of another's hands
 * could stamp it with a time before it was handed over. A fence in front of the reading prevents that, and makes the
 * processor wait for all that it has under way, some 10 ns an event. It is needed only where another flow stamped since
 * this one did. So flows own the stamps by turns:
 *
 *	owned by this flow	no fence. A flow that stamped since would have become the owner before its event could be
 *				seen, and loads are done in order: we would see that we own nothing any more
 *	owned by another	fence, and own
 *	shared until T		where the owner changed too often. Whoever reads a time before T has fenced and owns
 *				nothing; whoever reads a later one owns. All that an owner reads from then on is >= T
 *
 * A flow's own readings never go back: agent/flow.h sees to that.
 */
#ifndef TORSH_AGENT_STAMP_H
#define TORSH_AGENT_STAMP_H

#include <stdatomic.h>
#include <stdint.h>

#include "shim/sys.h"

struct flow;

/* A flow's address; or a time in ticks << 1 | 1: shared until then; 0: nobody's. */
extern _Atomic uint64_t torsh_stamp_owner;

/* Slow half of torsh_stamp_ticks. */
uint64_t torsh_stamp_take(const struct flow *flow);

/* A new use of the flow by another thread, which is not the one that owned. */
void torsh_stamp_disown(const struct flow *flow);

static inline uint64_t torsh_stamp_ticks(const struct flow *flow)
{
	if (__builtin_expect(TORSH_CPU_LOADS_IN_ORDER &&
				     atomic_load_explicit(&torsh_stamp_owner, memory_order_relaxed) == (uintptr_t)flow,
			     1))
		return torsh_cpu_ticks();
	return torsh_stamp_take(flow);
}

#endif
