/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Readings of the time stamp counter in causal order: an event that saw the effect of another
 * thread's event gets a later stamp.
 *
 * The processor may read the counter before earlier loads complete: a thread that receives a block
 * from another thread could stamp it with a time before it was handed over. A fence before the
 * reading prevents that, but waits for all loads in flight, some 10 ns per event. It is needed only
 * if another producer stamped since this one did. So the stamps have an owner, which changes:
 *
 *	owned by this producer	no fence. A producer that stamped since would have become the owner
 *				before its event was visible, and loads complete in order: this
 *				producer would see that it is no longer the owner
 *	owned by another	fence, and become the owner
 *	shared until T		after too many changes of owner. A producer that reads a time before
 *				T has fenced and owns nothing; one that reads a later time becomes
 *				the owner. All that an owner reads from then on is >= T
 *
 * A producer's own readings never go back: agent/producer/producer.h ensures it.
 *
 * The counter may be set back for all producers at once: by a suspend, or when a virtual machine or
 * a process image moves to another machine. Stamps are the counter plus a lift, 0 at first, that
 * compensates for it:
 *
 *	owned by this producer	no other producer stamped since, so its own last stamp is the
 *				highest of all: agent/producer/producer.h compares
 *	shared until T		readings below T - SHARED_TICKS were never shared: compared with the
 *				reference
 *	the owner changes	compared with the reference (agent/wire/clock.h): by
 *				CLOCK_MONOTONIC, which is never set back, the counter must have
 *				reached a certain value by now. If it has not, the difference is
 *				added to the lift, plus the error bounds of the rate now and at
 *				each earlier lift, so that the next reading is above all others
 *
 * A lift that was read before another thread raised it gives a low reading, which the same
 * comparisons find. They miss less than a millisecond, a thousandth of the time since the writer
 * last published, and as much for each earlier lift; then a producer's time stands still.
 */
#ifndef TORSH_AGENT_PRODUCER_STAMP_H
#define TORSH_AGENT_PRODUCER_STAMP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/wire/clock.h"
#include "shim/sys.h"

struct producer;

/* a producer's address; or a time in ticks << 1 | 1: shared until then; 0: no owner */
extern _Atomic uint64_t torsh_stamp_owner;

/* stamps are more than the counter: see torsh_producer_slow_stamp */
extern _Atomic int torsh_stamp_is_slow;

/*
 * Set the lift and the reference, both in the channel; NULL: there is none. Called before the first
 * producer.
 */
void torsh_stamp_use(_Atomic uint64_t *lift, const struct clock_reference *published, bool is_slow);

/* The slow half of torsh_stamp_ticks. */
uint64_t torsh_stamp_take(const struct producer *producer);

/*
 * Read again for a producer that read a time below its own last one; raises the lift if the counter
 * was set back.
 */
uint64_t torsh_stamp_retake(const struct producer *producer);

/* Called when another thread takes over the producer: it is not the one that owned the stamps. */
void torsh_stamp_disown(const struct producer *producer);

/* As torsh_stamp_ticks, with the lift. */
uint64_t torsh_stamp_lifted_ticks(const struct producer *producer);

/* Valid while nothing is lifted. */
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
