/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A message at the session's socket: a hello, a request, or anything; with a descriptor when its
 * last byte is odd.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/writer/threads/client.h"

#define MESSAGE_MAX (64u << 10)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

static void send_bytes(int fd, const uint8_t *bytes, size_t n_bytes)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.header = {.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS,
				.cmsg_len = CMSG_LEN(sizeof(int))}};
	struct iovec data = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n_bytes};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	if (n_bytes && bytes[n_bytes - 1] & 1) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	if (sendmsg(fd, &message, 0) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct client_message message;
	int fds[2];

	if (n_bytes > MESSAGE_MAX)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds))
		abort();
	send_bytes(fds[0], bytes, n_bytes);
	if (!torsh_client_receive(fds[1], &message) && message.kind == CLIENT_HELLO)
		close(message.channel_fd);
	close(fds[0]);
	close(fds[1]);
	return 0;
}
