/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The agent's life in the target. It starts with the first event of a process, again with the first
 * one of a forked child, and ends with the process. First file of this folder: process.h is the
 * state of one process, config.h its variables, environment.h what children inherit.
 */
#ifndef TORSH_AGENT_PROCESS_AGENT_H
#define TORSH_AGENT_PROCESS_AGENT_H

#include <stdbool.h>
#include <stdint.h>

struct channel;

/*
 * Start the agent in this process unless it has started: called by the first hook, or by the
 * constructor.
 */
void torsh_agent_start(void);

/*
 * Called on the only thread of a child that fork left: give it a channel of its own, or turn
 * recording off in it.
 */
void torsh_agent_restart_in_child(void);

/* Begin the recording of a dormant process, if it is armed. Within a hook of any thread. */
void torsh_agent_arm(void);

/*
 * Create a channel for this process and pass it to the session's writer, or begin a session. With
 * parent, its tables are copied; the caller reports a child's failure. Returns 0 or -errno.
 */
int torsh_agent_open_channel(const struct channel *parent);

/* Open this process's channel again for a new session or that of torsh_session_socket. Likewise. */
int torsh_agent_reopen_channel(void);

/*
 * Begin the recording of a process that was dormant and is armed, by a function that gives it a
 * channel and a writer, and note that in its page and in the recording. Returns 0 or -errno.
 */
int torsh_agent_begin_armed(int (*begin)(void));

/* Nothing is recorded from now on: hooks check this first. */
void torsh_agent_turn_off(void);

/*
 * The process has no writer any more and nothing that is open: it waits to be armed. Returns
 * whether it does; false: it has no page that could arm it, and is off.
 */
bool torsh_agent_rest(void);

/* A forked child begins to run: a dormant one can be armed for itself. Async-signal-safe. */
void torsh_agent_created(void);

/*
 * exit or a relative was called: send the writer the status, and wait where the writer requests it.
 * how is an EXIT_* value.
 */
void torsh_agent_exiting(int status, uint32_t how);

/*
 * The program begins to end: an interpreter will free what it holds. Wait until its blocks are
 * judged as they are now.
 */
void torsh_agent_exit_begins(void);

/*
 * abort was called, or an assertion failed. In process 1 of a PID namespace this counts as an exit,
 * because the kernel then ends the writer too; not if the program handles SIGABRT.
 */
void torsh_agent_aborting(void);

/*
 * torsh_agent_is_sandboxed, brought up to date: before system calls that only a start may make. The
 * writer is queried for filters that the agent did not see (agent/session/status_request.h).
 */
bool torsh_agent_is_sandboxed_now(void);

/* Called before a fork: request the same for the child, which waits for the answer. */
void torsh_agent_forking(void);

#endif
