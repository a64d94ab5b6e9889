/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Whether this process locks what it maps (mlockall with MCL_FUTURE), so that the agent's memory
 * takes of what it may lock.
 */
#ifndef TORSH_AGENT_PROCESS_MEMORY_LOCK_H
#define TORSH_AGENT_PROCESS_MEMORY_LOCK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * One time in a process image: reads the limit, which later calls would be an additional system
 * call for.
 */
void torsh_memory_lock_start(void);

/* A new mapping was found locked. */
void torsh_memory_lock_note(void);

/* New mappings are locked. */
bool torsh_memory_lock_is_on(void);

/*
 * They are, and the process has no right to pass the limit, up to which the program needs it for
 * itself.
 */
bool torsh_memory_lock_is_limited(void);

/* Bytes that a process may lock; UINT64_MAX: all. */
uint64_t torsh_memory_lock_limit(void);

#endif
