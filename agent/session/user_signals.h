/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Signals that the user gives the agent: TORSH_PROFILER_SIGNAL arms a dormant process, and pauses
 * and resumes a session; one of TORSH_PROFILER_KEEP makes a flight recorder keep a copy. Without
 * these variables no signal is taken.
 */
#ifndef TORSH_AGENT_SESSION_USER_SIGNALS_H
#define TORSH_AGENT_SESSION_USER_SIGNALS_H

/*
 * Handle these signals, those of them that have their default action: a handler that the program
 * installs later takes its place. System calls are restarted after it. Before main.
 */
void torsh_user_signals_start(void);

#endif
