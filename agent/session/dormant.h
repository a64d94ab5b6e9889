/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A process that is not recorded until it is armed: by `torsh start`, which stores a word of a page
 * that both map (agent/wire/dormant_page.h), or by the process itself. Hooks of the heap read this
 * word as they read that of a pause, so that the next one in any thread begins the recording.
 */
#ifndef TORSH_AGENT_SESSION_DORMANT_H
#define TORSH_AGENT_SESSION_DORMANT_H

#include <stdbool.h>

/* Make the page, and its file. Returns 0 or -errno. Start only. */
int torsh_dormant_begin(void);

/* A page of a forked child's own; without one it shares its parent's. Async-signal-safe. */
void torsh_dormant_forked(void);

/*
 * The recording has ended: wait to be armed again. A process that began within a session gets a
 * page now. Returns 0 or -errno.
 */
int torsh_dormant_rest(void);

/* Remove the file of this process: it ends or becomes another program. Async-signal-safe. */
void torsh_dormant_end(void);

/* It did not become another program. */
void torsh_dormant_goes_on(void);

/* From the next hook of any thread on this process is recorded. Async-signal-safe. */
void torsh_dormant_arm(void);

/*
 * Whether the process is armed. A child that shares its memory or its page, as after vfork, is not.
 */
bool torsh_dormant_is_armed(void);

/* The socket of the session to join; NULL: none. */
const char *torsh_dormant_session(void);

/* The process is armed and starts, in this thread. */
void torsh_dormant_starts(void);

/* The recording has begun in the session with this socket, or not: NULL. */
void torsh_dormant_started(const char *session);

#endif
