/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The session's first process waits at its exit for as long as the writer requests it in the
 * channel: until the exports are written, the summary's text is there and, if the writer ends with
 * the process's PID namespace, the file is complete.
 */
#ifndef TORSH_AGENT_SESSION_EXIT_WAIT_H
#define TORSH_AGENT_SESSION_EXIT_WAIT_H

#include <stdbool.h>

#include "agent/wire/channel.h"

/*
 * Wait at the end of this process and print the writer's answer. Returns without one if the writer
 * makes no progress, a signal was handled, or the time limit passes. While it is judged a signal
 * does not end the wait: a process with one thread has its handlers put off, and the writer puts
 * them off where it has stopped the other threads. may_be_first: the writer may not have attached
 * yet, and this process began the session. Uses only futexes where a seccomp filter may forbid
 * everything else.
 */
void torsh_exit_wait(struct channel_header *header, bool may_be_first);

/*
 * The process begins to end, and will free what it could use until now: wait until the writer has
 * judged its blocks, if it does that, once in a process. Returns as above.
 */
void torsh_exit_begin_wait(struct channel_header *header);

#endif
