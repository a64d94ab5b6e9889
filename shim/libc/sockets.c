/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a server receives and sends: how the requests begin and end that are its steps. */
#include <sys/socket.h>

#include "shim/hooks.h"
#include "shim/libc/next.h"

EXPORT ssize_t recv(int fd, void *data, size_t n, int flags)
{
	ssize_t got = torsh_next.recv(fd, data, n, flags);

	if (!(flags & (MSG_PEEK | MSG_OOB | MSG_TRUNC | MSG_ERRQUEUE)))
		torsh_http_received(fd, data, got, false);
	return got;
}

EXPORT ssize_t send(int fd, const void *data, size_t n, int flags)
{
	ssize_t sent = torsh_next.send(fd, data, n, flags);

	if (!(flags & MSG_OOB))
		torsh_http_sent(fd, data, sent);
	return sent;
}
