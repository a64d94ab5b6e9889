/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * While the writer looks at the memory of a process that waits at its exit, no handler of a signal
 * may change it. A signal that comes meanwhile is handled right after: without us the process would
 * not be there any more. Signals without a handler do what they always do.
 */
#ifndef TORSH_AGENT_SESSION_EXIT_QUIET_H
#define TORSH_AGENT_SESSION_EXIT_QUIET_H

/*
 * Block the signals that have handlers, if this is the only thread: another one would run them
 * otherwise. Makes system calls.
 */
void torsh_exit_quiet_begin(void);

/* Let the handlers run that were due meanwhile. */
void torsh_exit_quiet_end(void);

#endif
