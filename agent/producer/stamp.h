/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Readings of the time stamp counter that are ordered as causes are: an event that saw the effect
 * of another thread's event gets the later one.
 *
 * The counter may be read before earlier loads have their values: a thread that takes a block out
 * of another's hands could stamp it with a time before it was handed over. A fence in front of the
 * reading prevents that, and makes the processor wait for all that it has under way, some 10 ns an
 * event. It is needed only where another producer stamped since this one did. So producers own the
 * stamps by turns:
 *
 *	owned by this producer	no fence. A producer that stamped since would have become the owner
 *				before its event could be seen, and loads are done in order: we
 *				would see that we own nothing any more
 *	owned by another	fence, and own
 *	shared until T		where the owner changed too often. Whoever reads a time before T has
 *				fenced and owns nothing; whoever reads a later one owns. All that an
 *				owner reads from then on is >= T
 *
 * A producer's own readings never go back: agent/producer/producer.h sees to that.
 *
 * The counter may be set back below all of us at once: by a suspend, or when a virtual machine or a
 * process image moves to another machine. Stamps are the counter plus a lift, 0 at first, that
 * makes good for it:
 *
 *	owned by this producer	no other producer stamped since, so its own last stamp is the
 *				highest of all: agent/producer/producer.h compares
 *	shared until T		readings below T - SHARED_TICKS were never shared: compared with the
 *				reference
 *	the owner changes	compared with the reference (agent/wire/clock.h): by
 *				CLOCK_MONOTONIC, which is not set back, the counter must be so far
 *				by now. Where it isn't, what is missing is added to the lift, with
 *				what the rate may be wrong by now and at each lift before, so that
 *				the next reading is above all of before
 *
 * A lift that was read before another thread raised it gives a low reading, which the same
 * comparisons find. Not seen is less than a millisecond, a thousandth of the time since the writer
 * last published, and as much for each lift before; then a producer's time stands still.
 */
#ifndef TORSH_AGENT_PRODUCER_STAMP_H
#define TORSH_AGENT_PRODUCER_STAMP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/wire/clock.h"
#include "shim/sys.h"

struct producer;

/* A producer's address; or a time in ticks << 1 | 1: shared until then; 0: nobody's. */
extern _Atomic uint64_t torsh_stamp_owner;

/* Stamps aren't the counter alone: torsh_producer_slow_stamp. */
extern _Atomic int torsh_stamp_is_slow;

/*
 * Where the lift lies, and the reference: both in the channel; NULL: there is none. Before there
 * are producers.
 */
void torsh_stamp_use(_Atomic uint64_t *lift, const struct clock_reference *published, bool is_slow);

/* Slow half of torsh_stamp_ticks. */
uint64_t torsh_stamp_take(const struct producer *producer);

/*
 * For a producer that read a time below its own last one: another reading, which lifts all if the
 * counter was set back.
 */
uint64_t torsh_stamp_retake(const struct producer *producer);

/* A new use of the producer by another thread, which is not the one that owned. */
void torsh_stamp_disown(const struct producer *producer);

/* As torsh_stamp_ticks, with the lift. */
uint64_t torsh_stamp_lifted_ticks(const struct producer *producer);

/* As long as nothing is lifted. */
static inline uint64_t torsh_stamp_ticks(const struct producer *producer)
{
	if (__builtin_expect(
		    TORSH_CPU_LOADS_IN_ORDER &&
			    atomic_load_explicit(&torsh_stamp_owner, memory_order_relaxed) ==
				    (uintptr_t)producer,
		    1))
		return torsh_cpu_ticks();
	return torsh_stamp_take(producer);
}

#endif
