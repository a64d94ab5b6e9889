/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A request to one writer. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/live/live.h"

/*
 * A writer answers within milliseconds; one that is far behind its targets reports its status
 * after a second.
 */
#define STATUS_TIMEOUT_S 10
#define TIMEOUT_S 60

#define N_FDS 2u

/*
 * Check that the socket belongs to this user. Before connecting, because connecting to another
 * user's socket may block as long as they like: with a full queue. Returns 0 or -errno.
 */
static int expect_own(const char *path)
{
	struct stat status;

	if (lstat(path, &status))
		return -errno;
	return status.st_uid == geteuid() ? 0 : -EACCES;
}

/* Returns the connection, or -errno. */
static int connect_to(const char *path, int patience_s)
{
	const struct timeval patience = {.tv_sec = patience_s};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct ucred peer;
	socklen_t n_peer = sizeof(peer);
	int fd, error = expect_own(path);

	if (error)
		return error;
	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n_peer)) {
		error = errno;
		close(fd);
		return -error;
	}
	/* Only the user id is used: the pid is that of the process that called listen. */
	if (peer.uid != geteuid()) {
		close(fd);
		return -EACCES;
	}
	return fd;
}

static void take_descriptors(struct msghdr *message, int *fds)
{
	size_t n_taken = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		size_t n =
			c->cmsg_len > CMSG_LEN(0) ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;

		for (size_t i = 0;
		     c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (n_taken < N_FDS)
				fds[n_taken++] = fd;
			else
				close(fd);
		}
	}
}

static int receive(int fd, struct live_answer *answer)
{
	struct iovec data = {.iov_base = &answer->reply, .iov_len = sizeof(answer->reply)};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(N_FDS * sizeof(int))];
	} control;
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	do
		n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? -ETIMEDOUT : -errno;
	if (n == 0)
		return -ECONNRESET;
	take_descriptors(&message, answer->fds);
	if (n != (ssize_t)sizeof(answer->reply) || (message.msg_flags & MSG_TRUNC) ||
	    answer->reply.magic != REQUEST_MAGIC || answer->reply.version != REQUEST_VERSION ||
	    answer->reply.result > 0)
		return -EPROTO;
	return answer->reply.result;
}

/* Wait until the writer closes the connection by its end: then everything is written. */
static void await_close(int fd)
{
	struct pollfd closed = {.fd = fd, .events = POLLIN};

	while (poll(&closed, 1, -1) < 0 && errno == EINTR)
		;
}

static int query(const char *socket_path, const struct request *request, struct live_answer *answer)
{
	uint32_t verb = request->verb;
	bool is_whole = verb == REQUEST_SNAPSHOT || verb == REQUEST_JUDGED_SNAPSHOT;
	int n_wanted = is_whole ? 2 : verb == REQUEST_STATUS, fd, result;

	*answer = (struct live_answer){.fds = {-1, -1}};
	fd = connect_to(socket_path, verb == REQUEST_STATUS ? STATUS_TIMEOUT_S : TIMEOUT_S);
	if (fd < 0)
		return fd;
	result = send(fd, request, sizeof(*request), MSG_NOSIGNAL) < 0 ? -errno
								       : receive(fd, answer);
	if (!result && verb == REQUEST_END)
		await_close(fd);
	close(fd);
	if (result == -EPIPE)
		result = -ECONNRESET;
	if (!result && n_wanted && answer->fds[n_wanted - 1] < 0)
		result = -EPROTO;
	if (result)
		torsh_live_close(answer);
	return result;
}

int torsh_live_query(const char *socket_path, enum request_verb verb, uint32_t n_sites,
		     struct live_answer *answer)
{
	return query(socket_path,
		     &(struct request){.magic = REQUEST_MAGIC,
				       .version = REQUEST_VERSION,
				       .verb = verb,
				       .n_sites = n_sites},
		     answer);
}

int torsh_live_query_process(const char *socket_path, enum request_verb verb, uint32_t pid,
			     struct live_answer *answer)
{
	return query(socket_path,
		     &(struct request){.magic = REQUEST_MAGIC,
				       .version = REQUEST_VERSION,
				       .verb = verb,
				       .pid = pid},
		     answer);
}

void torsh_live_close(struct live_answer *answer)
{
	for (size_t i = 0; i < N_FDS; i++) {
		if (answer->fds[i] >= 0)
			close(answer->fds[i]);
		answer->fds[i] = -1;
	}
}

const char *torsh_live_reason(int error)
{
	switch (error) {
	case -EACCES:
	case -EPERM:
		return "it is another user's";
	case -ECONNRESET:
		return "it ended, or refused to answer";
	case -ETIMEDOUT:
		return "it didn't answer in time";
	case -EPROTO:
		return "it is of another version of torsh";
	case -ECONNREFUSED:
	case -ENOENT:
		return "it has ended";
	default:
		return strerror(-error);
	}
}
