/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What arrives at the session's socket, one message a connection: the hello of a process, or a
 * client's request. Nothing here waits. The message is another process's: what doesn't fit to the
 * byte is refused.
 */
#ifndef TORSH_WRITER_THREADS_CLIENT_H
#define TORSH_WRITER_THREADS_CLIENT_H

#include <sys/types.h>

#include "agent/wire/request.h"

enum client_kind { CLIENT_HELLO, CLIENT_REQUEST };

struct client_message {
	enum client_kind kind;
	pid_t pid; /* of the sender, from the kernel */
	int channel_fd; /* HELLO: now the caller's of torsh_client_receive. REQUEST: -1 */
	struct request request;
};

/*
 * Receive the message of a connection. Returns 0, -EAGAIN when none has arrived yet, or another
 * -errno, after which the caller closes the connection.
 */
int torsh_client_receive(int fd, struct client_message *message);

/*
 * Send an answer with its descriptors, which stay the caller's; those below 0 are left out. Returns
 * 0 or -errno.
 */
int torsh_client_answer(int fd, const struct request_answer *answer, const int *fds, int n_fds);

#endif
