/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the session's first process waits for at its exit, in its channel
 * (agent/session/exit_wait.h). Nothing of it is the process's to hold: the writer keeps no pipe of
 * the process open, and its messages are printed by the process.
 */
#ifndef TORSH_WRITER_THREADS_EXIT_REPLY_H
#define TORSH_WRITER_THREADS_EXIT_REPLY_H

#include <stdbool.h>

#include "tools/writer/input/target.h"

/*
 * Bits of channel_exit_wish for a process that began its session: has_summary and has_exports as
 * requested. The writer's own PID namespace decides about EXIT_WHOLE.
 */
uint32_t torsh_exit_reply_wishes(bool has_summary, bool has_exports);

/* Write it to the channel before writer_state shows that the writer is there. */
void torsh_exit_reply_promise(struct target *target, uint32_t wishes);

/* Has it begun to wait, and got no answer? */
bool torsh_exit_reply_is_awaited(const struct target *target);

/* Let it go, with a text to print: cut where it is longer than the channel has room for. */
void torsh_exit_reply_send(struct target *target, const char *text);

#endif
