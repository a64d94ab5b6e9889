/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Process 1 of a PID namespace waits at its start until the recording has begun: the kernel kills
 * the writer with it, and its end may come before the writer has written anything.
 */
#ifndef TORSH_AGENT_SESSION_START_WAIT_H
#define TORSH_AGENT_SESSION_START_WAIT_H

#include "agent/wire/channel.h"

/*
 * Wait until the writer has attached to the channel: the recording contains the process then.
 * Bounded in time and by the writer's life. Called before the program's first instruction.
 */
void torsh_start_wait(struct channel_header *header);

#endif
