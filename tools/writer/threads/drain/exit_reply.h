/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The writer's side of agent/session/exit_wait.h: what the session's first process waits for at its
 * exit, in its channel. The writer keeps no pipe of the process open: the process prints the
 * writer's messages.
 */
#ifndef TORSH_WRITER_THREADS_DRAIN_EXIT_REPLY_H
#define TORSH_WRITER_THREADS_DRAIN_EXIT_REPLY_H

#include <stdbool.h>

#include "tools/writer/input/target.h"

/*
 * Returns bits of channel_exit_wish for a process that began its session: has_summary and
 * has_exports as requested. The writer's own PID namespace determines EXIT_WHOLE.
 */
uint32_t torsh_exit_reply_wishes(bool has_summary, bool has_exports);

/* Write the wishes to the channel, before writer_state shows that the writer is there. */
void torsh_exit_reply_promise(struct target *target, uint32_t wishes);

/* Returns true if the process waits at its exit without an answer so far. */
bool torsh_exit_reply_is_awaited(const struct target *target);

/* Its memory is not looked at any more: handlers of signals may run while it waits on. */
void torsh_exit_judged(struct target *target);

/* Let the process continue, with a text to print, which is cut at CHANNEL_EXIT_TEXT_BYTES. */
void torsh_exit_reply_send(struct target *target, const char *text);

/* Returns true if the process waits where its exit begins, and was not answered yet. */
bool torsh_exit_begin_is_awaited(const struct target *target);

/* Let it go on. */
void torsh_exit_begin_reply(struct target *target);

#endif
