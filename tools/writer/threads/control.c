/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/base/memory.h"
#include "tools/writer/input/process_info.h"
#include "tools/writer/threads/client.h"
#include "tools/writer/threads/control_state.h"

#define FIRST_HELLO_NS UINT64_C(10000000000)
/* for a child that is connecting when the last target ends */
#define GRACE_NS UINT64_C(50000000)
#define SHORT_GRACE_NS UINT64_C(20000000) /* if no target is known to have children */
#define CHILD_STEP_MS 10
#define PULSE_MS 200
#define CLIENT_MAX 64u /* connections without a hello; beyond this the oldest is closed */

static void clear_event(struct control *control, int fd)
{
	uint64_t n;

	if (read(fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		control->must_end = true;
}

int torsh_control_watch(struct control *control, struct watch *watch)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = watch};

	return epoll_ctl(control->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) ? -errno : 0;
}

void torsh_control_drop(struct control *control, struct watch **list, struct watch *watch)
{
	while (*list && *list != watch)
		list = &(*list)->next;
	if (*list)
		*list = watch->next;
	epoll_ctl(control->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
	if (watch->kind == WATCH_CLIENT) {
		close(watch->fd);
		control->n_clients--;
		if (watch->queued)
			watch->queued->client = NULL;
	}
	watch->next = control->gone;
	watch->fd = -1;
	control->gone = watch;
}

static void free_gone(struct control *control)
{
	while (control->gone) {
		struct watch *watch = control->gone;

		control->gone = watch->next;
		free(watch);
	}
}

/* Answer without the drain, and close the connection. */
static void answer_now(struct control *control, struct watch *watch, enum request_verb verb,
		       int result)
{
	struct queued_request *queued =
		torsh_queued_request_create(&(struct request){.verb = verb}, NULL);

	queued->answer.result = result;
	queued->answer.n_processes =
		(uint32_t)(control->n_targets - torsh_drain_finished(control->drain));
	torsh_client_answer(watch->fd, &queued->answer, queued->fds, 0);
	torsh_queued_request_destroy(queued);
	torsh_control_drop(control, &control->clients, watch);
}

static void receive_client(struct control *control, struct watch *watch)
{
	struct client_message message;
	int result = torsh_client_receive(watch->fd, &message), pidfd;

	if (result == -EAGAIN) {
		/* Most connections are about to send a hello. */
		control->last_change_ns = torsh_clock_monotonic_ns();
		return;
	}
	if (result || watch->queued) {
		if (!result && message.channel_fd >= 0)
			close(message.channel_fd);
		torsh_control_drop(control, &control->clients, watch);
		return;
	}
	if (message.kind == CLIENT_REQUEST && message.request.verb == REQUEST_END) {
		/* Who requested it waits until this process closes that by its own end. */
		(void)!fcntl(watch->fd, F_DUPFD_CLOEXEC, 0);
		answer_now(control, watch, message.request.verb, 0);
		control->must_end = true;
		return;
	}
	if (message.kind == CLIENT_REQUEST && message.request.verb == REQUEST_STOP) {
		int rest = torsh_control_let_rest(control);

		answer_now(control, watch, message.request.verb, rest);
		control->must_end |= !rest;
		control->was_stopped |= !rest;
		return;
	}
	if (message.kind == CLIENT_REQUEST) {
		watch->queued = torsh_queued_request_create(&message.request, watch);
		torsh_drain_request(control->drain, watch->queued);
		return;
	}
	pidfd = torsh_process_of_peer(watch->fd, message.pid);
	torsh_control_drop(control, &control->clients, watch);
	torsh_control_attach(control, message.channel_fd, message.pid, pidfd);
}

/* A client that has closed its connection gets no answer. */
static void send_answers(struct control *control)
{
	struct queued_request *queued;

	clear_event(control, control->options->answer_fd);
	while ((queued = torsh_drain_take_answer(control->drain))) {
		struct watch *watch = queued->client;

		if (queued->request.verb == REQUEST_EXIT_REPLY)
			torsh_control_begin_exit_reply(control, queued);
		if (watch) {
			torsh_client_answer(watch->fd, &queued->answer, queued->fds, 2);
			torsh_control_drop(control, &control->clients, watch);
		}
		torsh_queued_request_destroy(queued);
	}
}

static void drop_oldest_client(struct control *control)
{
	struct watch *oldest = control->clients;

	while (oldest->next)
		oldest = oldest->next;
	torsh_control_drop(control, &control->clients, oldest);
}

static void accept_clients(struct control *control)
{
	int fd;

	while ((fd = accept4(control->options->socket_fd, NULL, NULL,
			     SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		struct watch *watch = torsh_memory_new(1, sizeof(*watch));

		*watch = (struct watch){.kind = WATCH_CLIENT, .fd = fd, .next = control->clients};
		control->clients = watch;
		control->n_clients++;
		if (torsh_control_watch(control, watch)) {
			torsh_control_drop(control, &control->clients, watch);
			continue;
		}
		if (control->n_clients > CLIENT_MAX)
			drop_oldest_client(control);
		/* Usually the hello is already there, which saves another round. */
		receive_client(control, watch);
	}
}

static void handle(struct control *control, struct watch *watch)
{
	if (watch->fd < 0)
		return;
	switch (watch->kind) {
	case WATCH_SOCKET:
		accept_clients(control);
		break;
	case WATCH_DONE:
		control->last_change_ns = torsh_clock_monotonic_ns();
		clear_event(control, control->options->done_fd);
		torsh_control_take_unfollowed(control);
		control->must_end |= torsh_drain_must_end(control->drain);
		break;
	case WATCH_ANSWER:
		send_answers(control);
		break;
	case WATCH_CLIENT:
		receive_client(control, watch);
		break;
	case WATCH_TARGET:
		/* It may have sent another hello, as another image, before it ended. */
		accept_clients(control);
		if (watch->fd >= 0)
			torsh_control_set_fate(control, watch, TARGET_DIED);
		break;
	case WATCH_EXPORT:
		torsh_control_end_export(control);
		break;
	case WATCH_UNFOLLOWED:
		/* Likewise, it may have become a program that can be followed. */
		accept_clients(control);
		torsh_control_set_unfollowed_fate(control, watch, TARGET_DIED);
		break;
	}
}

/* The process that began the session may have been killed before its hello. */
static bool is_first_gone(const struct control *control)
{
	int pidfd = control->options->first_pidfd;

	return pidfd == -ESRCH || (pidfd >= 0 && torsh_process_has_ended(pidfd));
}

/*
 * Returns true if the session is over. If not, *timeout_ms is the time until the next check; -1:
 * after the next event.
 */
static bool is_over(struct control *control, int *timeout_ms)
{
	uint64_t now = torsh_clock_monotonic_ns(), until = control->start_ns + FIRST_HELLO_NS;
	uint64_t grace = torsh_drain_had_children(control->drain) ? GRACE_NS : SHORT_GRACE_NS;

	*timeout_ms = -1;
	if (torsh_drain_finished(control->drain) < control->n_targets)
		return false;
	if (control->n_targets)
		until = control->last_change_ns + grace;
	else if (is_first_gone(control))
		until = control->start_ns + GRACE_NS;
	if (now < until) {
		*timeout_ms =
			(int)((until - now < GRACE_NS ? until - now : GRACE_NS) / 1000000u) + 1;
		return false;
	}
	*timeout_ms = CHILD_STEP_MS;
	return !torsh_drain_has_pending_child(control->drain) &&
	       !torsh_drain_is_keeping(control->drain);
}

static void leave_all(struct control *control)
{
	/* Another one may have connected since. */
	if (control->was_stopped)
		torsh_control_let_rest(control);
	while (control->targets)
		torsh_control_set_fate(control, control->targets, TARGET_LEFT);
	while (control->clients)
		torsh_control_drop(control, &control->clients, control->clients);
	while (control->unfollowed_list)
		torsh_control_drop(control, &control->unfollowed_list, control->unfollowed_list);
	free_gone(control);
}

/* Wait until the drain has finished all targets. */
static void wait_for_drain(struct control *control)
{
	struct pollfd done = {.fd = control->options->done_fd, .events = POLLIN};

	while (torsh_drain_finished(control->drain) < control->n_targets) {
		poll(&done, 1, -1);
		clear_event(control, control->options->done_fd);
	}
}

static int serve(struct control *control)
{
	int timeout_ms;

	while (!control->must_end && !is_over(control, &timeout_ms)) {
		struct epoll_event events[64];
		int n = epoll_wait(control->epoll_fd, events, 64,
				   timeout_ms < 0 ? PULSE_MS : timeout_ms);

		torsh_control_publish_cpu_time(control);
		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n; i++)
			handle(control, events[i].data.ptr);
		free_gone(control);
	}
	return !control->must_end || control->was_stopped;
}

static void remove_socket(const char *path)
{
	char *directory = torsh_memory_text(path), *slash = strrchr(directory, '/');

	unlink(path);
	if (slash && slash != directory) {
		*slash = '\0';
		rmdir(directory);
	}
	free(directory);
}

int torsh_control_run(const struct control_options *options, struct drain *drain,
		      bool *has_exported)
{
	struct control control = {
		.options = options,
		.drain = drain,
		.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
		.socket = {.kind = WATCH_SOCKET, .fd = options->socket_fd},
		.done = {.kind = WATCH_DONE, .fd = options->done_fd},
		.answer = {.kind = WATCH_ANSWER, .fd = options->answer_fd},
		.export = {.kind = WATCH_EXPORT, .fd = -1},
		.messages_fd = -1,
		.start_ns = torsh_clock_monotonic_ns(),
	};
	int result;

	if (control.epoll_fd < 0)
		return -errno;
	result = torsh_control_watch(&control, &control.socket);
	if (!result)
		result = torsh_control_watch(&control, &control.done);
	if (!result)
		result = torsh_control_watch(&control, &control.answer);
	if (!result)
		result = serve(&control);
	/* From here on no process can connect; existing connections are served to the end. */
	remove_socket(options->socket_path);
	accept_clients(&control);
	if (result == 1 && !control.was_stopped)
		result = serve(&control);
	torsh_control_stop_export(&control);
	*has_exported = control.has_exported;
	leave_all(&control);
	wait_for_drain(&control);
	free(control.summary);
	close(control.epoll_fd);
	return result;
}
