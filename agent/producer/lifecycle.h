/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How a thread's producer is born at its first event and ends with the thread.
 */
#ifndef TORSH_AGENT_PRODUCER_LIFECYCLE_H
#define TORSH_AGENT_PRODUCER_LIFECYCLE_H

#include <stdint.h>

struct ring;

/*
 * One time in a process image, before the first producer: makes the key whose destructor ends
 * producers. 0 or -errno.
 */
int torsh_lifecycle_start(void);

/*
 * Make the calling thread's producer. NULL when it can't have one; its events are then counted as
 * lost.
 */
struct producer *torsh_lifecycle_producer(void);

/*
 * With a new channel: what threads share that have no producer of their own is made now, whatever
 * limits the process has or sets itself later.
 */
void torsh_lifecycle_reserve(void);

/* A ring that its slot's thread uses no more: unmapped, or kept for the slot's next one. */
void torsh_lifecycle_drop_ring(uint32_t slot, const struct ring *ring);

#endif
