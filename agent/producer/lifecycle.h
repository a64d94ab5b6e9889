/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The lifecycle of producers: one is created at a thread's first event and closed when the thread
 * ends.
 */
#ifndef TORSH_AGENT_PRODUCER_LIFECYCLE_H
#define TORSH_AGENT_PRODUCER_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Create the pthread key with the destructor that closes producers. Called once in a process image,
 * before the first producer. Returns 0 or -errno.
 */
int torsh_lifecycle_start(void);

/*
 * Create the calling thread's producer. Returns NULL if it can't have one: its events go to the
 * shared producer.
 */
struct producer *torsh_lifecycle_producer(void);

/*
 * Open the calling hook's producer again, on its slot: its process is recorded anew. Returns false
 * without memory.
 */
bool torsh_lifecycle_renew(struct producer *producer);

/* Reserve the shared producer of a new channel, before the process lowers its limits. */
void torsh_lifecycle_reserve(void);

#endif
