/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages that arrive at the session's socket, one per connection: the hello of a process, or a
 * client's request. Nothing here blocks. The message comes from another process: any that does not
 * match exactly is refused.
 */
#ifndef TORSH_WRITER_THREADS_CLIENT_H
#define TORSH_WRITER_THREADS_CLIENT_H

#include <sys/types.h>

#include "agent/wire/request.h"

enum client_kind { CLIENT_HELLO, CLIENT_REQUEST };

struct client_message {
	enum client_kind kind;
	pid_t pid; /* of the sender, from the kernel */
	int channel_fd; /* HELLO: owned by the caller of torsh_client_receive. REQUEST: -1 */
	struct request request;
};

/*
 * Receive the message of a connection. Returns 0, -EAGAIN when none has arrived yet, or another
 * -errno, after which the caller closes the connection.
 */
int torsh_client_receive(int fd, struct client_message *message);

/*
 * Send an answer with its descriptors, which stay the caller's; negative ones are left out. Returns
 * 0 or -errno.
 */
int torsh_client_answer(int fd, const struct request_answer *answer, const int *fds, int n_fds);

#endif
