/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Whether this process locks its mappings (mlockall with MCL_FUTURE), so that the agent's memory
 * counts against RLIMIT_MEMLOCK.
 */
#ifndef TORSH_AGENT_PROCESS_MEMORY_LOCK_H
#define TORSH_AGENT_PROCESS_MEMORY_LOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Read the limit; called once in a process image, so that later calls need no system call. */
void torsh_memory_lock_start(void);

/* Record that a new mapping was found locked. */
void torsh_memory_lock_note(void);

/* Whether new mappings are locked. */
bool torsh_memory_lock_is_on(void);

/*
 * Whether they are, and the process may not exceed RLIMIT_MEMLOCK: the program needs that memory
 * itself.
 */
bool torsh_memory_lock_is_limited(void);

/* Bytes that a process may lock; UINT64_MAX: no limit. */
uint64_t torsh_memory_lock_limit(void);

#endif
