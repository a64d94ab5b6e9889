/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls that the program makes by torsh.h and the writer answers: memory figures that are exact at
 * the call, and pauses. They go through the channel's header, one at a time, and use only futexes:
 * no descriptor, no memory.
 */
#ifndef TORSH_AGENT_SESSION_WRITER_CALL_H
#define TORSH_AGENT_SESSION_WRITER_CALL_H

#include "agent/wire/channel.h"

struct writer_request {
	uint32_t verb, window; /* verb: enum channel_call_verb */
	/* of the verbs that write a file; NULL: "" */
	const char *argument, *path;
};

/*
 * Make a call and wait for the answer: what this process allocated and freed before is in it.
 * *memory gets the figures, zeros for other verbs. Returns 0; -ENAMETOOLONG for too long a text;
 * -EDEADLK if the
 * calling thread makes a call already, below a signal handler; -ETIMEDOUT without any progress of
 * the writer; -ESRCH if it has ended; or the writer's -errno. Any thread that is in no hook.
 */
int torsh_writer_call(struct channel_header *header, const struct writer_request *request,
		      struct channel_memory *memory);

#endif
