/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls of torsh.h that need an answer: defined in collectors/ranges/session_calls.c. */
#ifndef TORSH_SHIM_RANGES_SESSION_CALLS_H
#define TORSH_SHIM_RANGES_SESSION_CALLS_H

#include <stdbool.h>

#include "agent/wire/channel.h"

/*
 * Make a call, an enum channel_call_verb, and wait for the writer's answer; *memory is zeroed
 * without one. Returns 0 or -errno: -ENOSYS if this process is not recorded, -EDEADLK in a signal
 * handler that interrupted the allocator or another call, -EPERM in a vfork child. Keeps errno.
 */
int torsh_session_call(uint32_t verb, uint32_t window, struct channel_memory *memory);

/*
 * The program switches tools on or off by another interface (CUDA's profiler control, ITT's): arm a
 * process that was started dormant, or resume and pause its recording. Else ignored. Keeps errno.
 */
void torsh_session_switch(bool is_on);

/*
 * Let the writer write a file: CALL_SNAPSHOT and later verbs. argument: as in channel.h; NULL: "".
 * Returns 0 or -errno: likewise, or as torsh.h has them. Keeps errno.
 */
int torsh_session_write_file(uint32_t verb, const char *argument, const char *path);

#endif
