/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The session's first process waits at its exit, for as long as the writer requests in its channel:
 * until the exports are written, the summary's text is there, and, where the writer ends with the
 * process's PID namespace, the file is whole.
 */
#ifndef TORSH_AGENT_SESSION_EXIT_WAIT_H
#define TORSH_AGENT_SESSION_EXIT_WAIT_H

#include <stdbool.h>

#include "agent/wire/channel.h"

/*
 * Wait at the end of this process and print the writer's answer. Ends without one when the writer
 * makes no progress, when a signal was handled, or at a time limit. may_be_first: the writer may
 * not have attached yet, and this process began the session. Futexes only: a seccomp filter may
 * forbid all else.
 */
void torsh_exit_wait(struct channel_header *header, bool may_be_first);

#endif
