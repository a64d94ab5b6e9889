/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Life in the target. The agent starts with the first event of a process, again with the first one
 * of a forked child, and ends with the process. First file of this folder: process.h is the state
 * of one process, config.h its variables, environment.h what children inherit.
 */
#ifndef TORSH_AGENT_PROCESS_AGENT_H
#define TORSH_AGENT_PROCESS_AGENT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Start the agent in this process if that was not done: called by the first hook, or by the
 * constructor.
 */
void torsh_agent_start(void);

/*
 * The calling thread is the only one of a child that fork left: give it a channel of its own, or go
 * quiet.
 */
void torsh_agent_restart_in_child(void);

/* exit or its kin was called: the writer gets the status, and finishes where it has to. */
void torsh_agent_exiting(int status, uint32_t how);

/*
 * abort was called, or an assertion failed. In process 1 of a PID namespace this is an exit, as the
 * kernel ends the writer with it; not where the program handles SIGABRT.
 */
void torsh_agent_aborting(void);

/*
 * torsh_agent_is_sandboxed as of now: before what only a start may do. A filter that was added past
 * the agent is queried from the writer (agent/session/status_request.h).
 */
bool torsh_agent_is_sandboxed_now(void);

/* A fork is about to be called: the same is queried for the child, which waits for the answer. */
void torsh_agent_forking(void);

#endif
