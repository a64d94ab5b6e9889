/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What comes in at the session's socket, one message a connection: the hello of a process, or a request of somebody
 * who looks on. Nothing here waits. The message is another process's: what doesn't fit to the byte is refused.
 */
#ifndef TORSH_WRITER_CALLER_H
#define TORSH_WRITER_CALLER_H

#include <sys/types.h>

#include "agent/wire/request.h"

enum caller_kind { CALLER_HELLO, CALLER_REQUEST };

struct caller_message {
	enum caller_kind kind;
	pid_t pid; /* of the sender, as the kernel says */
	int channel_fd; /* HELLO: now the caller's of torsh_caller_hear. REQUEST: -1 */
	struct request request;
};

/* Take the message from a connection. Returns 0, -EAGAIN: nothing was said yet, or -errno: it is to be closed. */
int torsh_caller_hear(int fd, struct caller_message *message);

/* Send an answer with its descriptors, which stay the caller's; those below 0 are left out. Returns 0 or -errno. */
int torsh_caller_answer(int fd, const struct request_answer *answer, const int *fds, int n_fds);

#endif
