/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What comes in at the session's socket, one message a connection: the hello of a process, or a
 * request of somebody who looks on. Nothing here waits. The message is another process's: what
 * doesn't fit to the byte is refused.
 */
#ifndef TORSH_WRITER_THREADS_CLIENT_H
#define TORSH_WRITER_THREADS_CLIENT_H

#include <sys/types.h>

#include "agent/wire/request.h"

enum client_kind { CLIENT_HELLO, CLIENT_REQUEST };

struct client_message {
	enum client_kind kind;
	pid_t pid; /* of the sender, as the kernel says */
	int channel_fd; /* HELLO: now the caller's of torsh_client_receive. REQUEST: -1 */
	struct request request;
};

/*
 * Take the message from a connection. Returns 0, -EAGAIN: nothing was said yet, or -errno: it is to
 * be closed.
 */
int torsh_client_receive(int fd, struct client_message *message);

/*
 * Send an answer with its descriptors, which stay the caller's; those below 0 are left out. Returns
 * 0 or -errno.
 */
int torsh_client_answer(int fd, const struct request_answer *answer, const int *fds, int n_fds);

#endif
