/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Waits of threads: shim/hooks.h has the hooks, shim/waits the functions that are interposed. */
#ifndef TORSH_COLLECTORS_WAITS_WAIT_EVENTS_H
#define TORSH_COLLECTORS_WAITS_WAIT_EVENTS_H

/* The process is about to execute a program: send what was counted and not sent yet. */
void torsh_waits_execute(void);

/* The process is about to end: the same, and the waits that last. */
void torsh_waits_end(void);

#endif
