/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What comes in at the session's socket: a hello with its one descriptor or a request without any
 * is understood, all else is refused, and no descriptor stays open.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "agent/wire/channel.h"
#include "test/unit/fixtures/random.h"
#include "tools/writer/threads/client.h"

#define PASSED_MAX 8

struct line {
	int ours, theirs;
};

static struct line connect_line(void)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	return (struct line){.ours = fds[0], .theirs = fds[1]};
}

static void hang_up(struct line *line)
{
	close(line->ours);
	close(line->theirs);
}

static void send_bytes(int fd, const void *bytes, size_t n, int n_fds)
{
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(PASSED_MAX * sizeof(int))];
	} control = {0};
	struct iovec data = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
	struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1};
	int passed[PASSED_MAX];

	for (int i = 0; i < n_fds; i++)
		passed[i] = STDIN_FILENO;
	if (n_fds) {
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN((size_t)n_fds * sizeof(int));
		memcpy(CMSG_DATA(&control.header), passed, (size_t)n_fds * sizeof(int));
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE((size_t)n_fds * sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &message, 0), n);
}

/* What is received when that is sent; descriptors that were left open are counted. */
static int hear_said(const void *bytes, size_t n, int n_fds, struct client_message *message)
{
	struct line line = connect_line();
	int result;

	send_bytes(line.theirs, bytes, n, n_fds);
	result = torsh_client_receive(line.ours, message);
	hang_up(&line);
	return result;
}

/* The lowest descriptor that is free: the same before and after where nothing was left open. */
static int lowest_free(void)
{
	int fd = open("/dev/null", O_RDONLY);

	close(fd);
	return fd;
}

static const struct channel_hello hello = {
	.magic = CHANNEL_MAGIC, .version = CHANNEL_VERSION, .pid = 1};

static struct request make_request(uint32_t verb)
{
	return (struct request){.magic = REQUEST_MAGIC, .version = REQUEST_VERSION, .verb = verb};
}

static void a_hello_comes_with_its_channel(void **state)
{
	struct client_message message;
	int free_before = lowest_free();

	(void)state;
	assert_int_equal(hear_said(&hello, sizeof(hello), 1, &message), 0);
	assert_int_equal(message.kind, CLIENT_HELLO);
	assert_int_equal(message.pid, getpid());
	assert_true(fcntl(message.channel_fd, F_GETFD) & FD_CLOEXEC);
	close(message.channel_fd);
	/* Of several the first one is taken. */
	assert_int_equal(hear_said(&hello, sizeof(hello), 4, &message), 0);
	close(message.channel_fd);
	assert_int_equal(hear_said(&hello, sizeof(hello), 0, &message), -EPROTO);
	assert_int_equal(lowest_free(), free_before);
}

static void a_request_comes_without_descriptors(void **state)
{
	static const uint32_t verbs[] = {REQUEST_STATUS, REQUEST_SNAPSHOT, REQUEST_PAUSE,
					 REQUEST_RESUME, REQUEST_STOP,	   REQUEST_END,
					 REQUEST_KEEP};
	struct client_message message;
	int free_before = lowest_free();

	(void)state;
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		struct request request = make_request(verbs[i]);

		assert_int_equal(hear_said(&request, sizeof(request), 0, &message), 0);
		assert_int_equal(message.kind, CLIENT_REQUEST);
		assert_int_equal(message.request.verb, verbs[i]);
		assert_int_equal(message.channel_fd, -1);
		for (int n_fds = 1; n_fds <= PASSED_MAX; n_fds++)
			assert_int_equal(hear_said(&request, sizeof(request), n_fds, &message),
					 -EPROTO);
	}
	assert_int_equal(lowest_free(), free_before);
}

static void a_request_fits_to_the_byte(void **state)
{
	struct request good = make_request(REQUEST_STATUS), bad;
	struct client_message message;
	char longer[2 * sizeof(good)] = {0};

	(void)state;
	memcpy(longer, &good, sizeof(good));
	for (size_t n = 0; n <= sizeof(longer); n++)
		assert_int_equal(hear_said(longer, n, 0, &message),
				 n == sizeof(good) ? 0 : -EPROTO);
#define REFUSED(field, value) \
	bad = good;           \
	bad.field = (value);  \
	assert_int_equal(hear_said(&bad, sizeof(bad), 0, &message), -EPROTO);
	REFUSED(magic, REQUEST_MAGIC ^ 1)
	REFUSED(magic, REQUEST_MAGIC + (UINT64_C(1) << 56))
	REFUSED(version, REQUEST_VERSION + 1)
	REFUSED(verb, 0)
	REFUSED(verb, REQUEST_RESUME + 1)
	REFUSED(verb, REQUEST_STOP + 1)
	REFUSED(n_sites, REQUEST_SITES_MAX + 1)
	REFUSED(pid, 1)
#undef REFUSED
}

static void any_other_bytes_are_refused(void **state)
{
	uint64_t random = 1;
	int free_before = lowest_free();

	(void)state;
	for (int i = 0; i < 3000; i++) {
		struct client_message message;
		uint8_t bytes[64];
		size_t n = random_below(&random, sizeof(bytes));

		for (size_t k = 0; k < n; k++)
			bytes[k] = (uint8_t)random_below(&random, 256);
		assert_int_equal(
			hear_said(bytes, n, (int)random_below(&random, PASSED_MAX), &message),
			-EPROTO);
	}
	assert_int_equal(lowest_free(), free_before);
}

static void an_empty_connection_is_no_error(void **state)
{
	struct line line = connect_line();
	struct client_message message;

	(void)state;
	assert_int_equal(torsh_client_receive(line.ours, &message), -EAGAIN);
	close(line.theirs);
	assert_int_equal(torsh_client_receive(line.ours, &message), -EPROTO);
	close(line.ours);
}

static void an_answer_never_waits(void **state)
{
	const struct request_answer answer = {.magic = REQUEST_MAGIC, .version = REQUEST_VERSION};
	const int fds[] = {-1, STDIN_FILENO};
	struct line line = connect_line();
	int result;

	(void)state;
	/* Nobody reads: at some time it is full. */
	do
		result = torsh_client_answer(line.ours, &answer, fds, 2);
	while (!result);
	assert_true(result == -EAGAIN || result == -ETOOMANYREFS);
	close(line.theirs);
	assert_true(torsh_client_answer(line.ours, &answer, fds, 2) < 0);
	close(line.ours);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hello_comes_with_its_channel),
		cmocka_unit_test(a_request_comes_without_descriptors),
		cmocka_unit_test(a_request_fits_to_the_byte),
		cmocka_unit_test(any_other_bytes_are_refused),
		cmocka_unit_test(an_empty_connection_is_no_error),
		cmocka_unit_test(an_answer_never_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
