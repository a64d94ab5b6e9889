/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The small rings of a process by slot. Slots that are reused first keep theirs mapped between
 * threads.
 */
#ifndef TORSH_AGENT_PRODUCER_RINGS_H
#define TORSH_AGENT_PRODUCER_RINGS_H

#include <stdint.h>

struct ring;

/* Map the small ring of a slot that the calling thread has taken. Returns 0 or -ENOMEM. */
int torsh_rings_take(int slot, struct ring *ring);

/*
 * Release the ring of a slot without a thread: it is unmapped, or kept for the slot's next thread.
 */
void torsh_rings_drop(uint32_t slot, const struct ring *ring);

#endif
