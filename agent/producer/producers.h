/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The memory of producers, and the list of those of a process that may rest
 * (agent/session/rest.h).
 */
#ifndef TORSH_AGENT_PRODUCER_PRODUCERS_H
#define TORSH_AGENT_PRODUCER_PRODUCERS_H

#include "agent/producer/producer.h"

/*
 * The memory of a producer and its stack: a kept block, or new pages that fork zeroes in a child.
 */
struct producer *torsh_producers_take_block(void);

/* Keep the block for another thread, or unmap it. */
void torsh_producers_drop_block(struct producer *producer);

/* It has a slot, and is about to give it back. Nothing to do in a process that never rests. */
void torsh_producers_add(struct producer *producer);
void torsh_producers_remove(struct producer *producer);

/*
 * Begin the next generation: the next event of each producer takes the slow path, and is dropped
 * there or opens the producer anew. An event under way is written where nobody reads it.
 */
void torsh_producers_expire(void);

#endif
