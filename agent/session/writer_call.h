/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls that the program makes by torsh.h and the writer answers: memory figures that are exact at
 * the call, and pauses. They go through the channel's header, one at a time, and use only futexes:
 * no descriptor, no memory.
 */
#ifndef TORSH_AGENT_SESSION_WRITER_CALL_H
#define TORSH_AGENT_SESSION_WRITER_CALL_H

#include "agent/wire/channel.h"

/*
 * Make a call and wait for the answer: what this process allocated and freed before is in it.
 * *memory gets the figures, zeros for CALL_PAUSE and CALL_RESUME. Returns 0; -EDEADLK if the
 * calling thread makes a call already, below a signal handler; -ETIMEDOUT without any progress of
 * the writer; -ESRCH if it has ended; or the writer's -errno. Any thread that is in no hook.
 */
int torsh_writer_call(struct channel_header *header, uint32_t verb, uint32_t window,
		      struct channel_memory *memory);

#endif
