/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/client.h"

#include <stdbool.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/wire/channel.h"

#define FDS_MAX 4u

union client_fds {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
};

/* Returns the one descriptor of a message, or -1; additional ones are closed. */
static int take_descriptor(struct msghdr *message)
{
	int taken = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		size_t n =
			c->cmsg_len > CMSG_LEN(0) ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (taken < 0)
				taken = fd;
			else
				close(fd);
		}
	}
	return taken;
}

static bool is_ours(int fd, pid_t *pid)
{
	struct ucred sender;
	socklen_t n_sender = sizeof(sender);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &sender, &n_sender) ||
	    sender.uid != geteuid() || sender.pid <= 0)
		return false;
	*pid = sender.pid;
	return true;
}

static bool is_hello(const void *bytes, size_t n)
{
	struct channel_hello hello;

	if (n != sizeof(hello))
		return false;
	memcpy(&hello, bytes, sizeof(hello));
	return hello.magic == CHANNEL_MAGIC && hello.version == CHANNEL_VERSION;
}

static bool is_verb(uint32_t verb)
{
	switch (verb) {
	case REQUEST_STATUS:
	case REQUEST_SNAPSHOT:
	case REQUEST_PAUSE:
	case REQUEST_RESUME:
	case REQUEST_STOP:
	case REQUEST_END:
	case REQUEST_JUDGED_SNAPSHOT:
	case REQUEST_KEEP:
		return true;
	default:
		return false;
	}
}

static bool is_request(const void *bytes, size_t n)
{
	struct request request;

	if (n != sizeof(request))
		return false;
	memcpy(&request, bytes, sizeof(request));
	return request.magic == REQUEST_MAGIC && request.version == REQUEST_VERSION &&
	       is_verb(request.verb) && request.n_sites <= REQUEST_SITES_MAX &&
	       (!request.pid || request.verb == REQUEST_JUDGED_SNAPSHOT ||
		request.verb == REQUEST_KEEP);
}

/* Returns 0, or -EPROTO: then the caller still owns the message's descriptor. */
static int understand(struct client_message *message, const void *bytes, size_t n, int fd)
{
	if (is_hello(bytes, n) && fd >= 0) {
		message->kind = CLIENT_HELLO;
		message->channel_fd = fd;
		return 0;
	}
	if (!is_request(bytes, n) || fd >= 0)
		return -EPROTO;
	message->kind = CLIENT_REQUEST;
	message->channel_fd = -1;
	memcpy(&message->request, bytes, sizeof(message->request));
	return 0;
}

int torsh_client_receive(int fd, struct client_message *message)
{
	char bytes[sizeof(struct request)];
	struct iovec data = {.iov_base = bytes, .iov_len = sizeof(bytes)};
	union client_fds fds;
	struct msghdr header = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &fds,
		.msg_controllen = sizeof(fds),
	};
	ssize_t n = recvmsg(fd, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	int passed_fd, result = -EPROTO;

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	passed_fd = take_descriptor(&header);
	if (!(header.msg_flags & MSG_TRUNC) && is_ours(fd, &message->pid))
		result = understand(message, bytes, (size_t)n, passed_fd);
	if (result && passed_fd >= 0)
		close(passed_fd);
	return result;
}

int torsh_client_answer(int fd, const struct request_answer *answer, const int *fds, int n_fds)
{
	struct iovec data = {.iov_base = (void *)(uintptr_t)answer, .iov_len = sizeof(*answer)};
	struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1};
	union client_fds control = {0};
	int passed[FDS_MAX];
	size_t n = 0;

	for (int i = 0; i < n_fds && n < FDS_MAX; i++) {
		if (fds[i] >= 0)
			passed[n++] = fds[i];
	}
	if (n) {
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(&control.header), passed, n * sizeof(int));
		header.msg_control = &control;
		header.msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
	return sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}
