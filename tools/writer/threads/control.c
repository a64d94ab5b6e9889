/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/writer/threads/control.h"

#include <stdbool.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/base/memory.h"
#include "tools/base/terminal.h"
#include "tools/writer/input/process_info.h"
#include "tools/writer/threads/client.h"

#define FIRST_HELLO_NS UINT64_C(10000000000)
/* for a child that is connecting when the last target ends */
#define GRACE_NS UINT64_C(50000000)
#define SHORT_GRACE_NS UINT64_C(20000000) /* if no target is known to have children */
#define CHILD_STEP_MS 10
#define PULSE_MS 200
#define CLIENT_MAX 64u /* connections without a hello; beyond this the oldest is closed */

enum watch_kind {
	WATCH_SOCKET,
	WATCH_DONE,
	WATCH_ANSWER,
	WATCH_CLIENT,
	WATCH_TARGET,
	WATCH_UNFOLLOWED,
	WATCH_EXPORT,
};

/* The context of an epoll event: a descriptor and its kind. */
struct watch {
	enum watch_kind kind;
	int fd;
	struct target *target;
	struct unfollowed *unfollowed;
	struct queued_request *queued; /* of a client: its pending request, owned by the drain */
	struct watch *next; /* of clients, targets or unfollowed processes */
};

struct control {
	const struct control_options *options;
	struct drain *drain;
	int epoll_fd;
	struct watch socket, done, answer;
	struct watch export; /* a child's pidfd, while it exports for the first process */
	pid_t export_pid; /* 0: there is no such child */
	int messages_fd; /* where its messages go; -1: the writer's stderr */
	char *summary; /* that the first process prints when it continues; NULL: it does not wait */
	bool has_exported;
	struct watch *clients; /* the newest first */
	uint32_t n_clients;
	struct watch *targets, *unfollowed_list; /* live ones */
	struct watch *gone; /* freed after this round of events, when no event can refer to them */
	uint64_t n_targets; /* handed over so far */
	uint64_t start_ns, last_change_ns;
	bool must_end;
};

static void clear_event(struct control *control, int fd)
{
	uint64_t n;

	if (read(fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		control->must_end = true;
}

static int watch_fd(struct control *control, struct watch *watch)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = watch};

	return epoll_ctl(control->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) ? -errno : 0;
}

/*
 * A target or an unfollowed process owns its watch's descriptor; a client's is owned by the watch.
 */
static void drop_watch(struct control *control, struct watch **list, struct watch *watch)
{
	while (*list != watch)
		list = &(*list)->next;
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

/* Hand the target back: from here on only the drain uses it. */
static void set_fate(struct control *control, struct watch *watch, enum target_fate fate)
{
	struct target *target = watch->target;

	control->last_change_ns = torsh_clock_monotonic_ns();
	drop_watch(control, &control->targets, watch);
	torsh_drain_set_fate(control->drain, target, fate);
}

static void set_unfollowed_fate(struct control *control, struct watch *watch, enum target_fate fate)
{
	struct unfollowed *unfollowed = watch->unfollowed;

	drop_watch(control, &control->unfollowed_list, watch);
	torsh_drain_set_unfollowed_fate(control->drain, unfollowed, fate);
}

static void take_unfollowed(struct control *control)
{
	struct unfollowed *unfollowed;

	while ((unfollowed = torsh_drain_take_unfollowed(control->drain))) {
		struct watch *watch = torsh_memory_new(1, sizeof(*watch));

		*watch = (struct watch){.kind = WATCH_UNFOLLOWED,
					.fd = unfollowed->pidfd,
					.unfollowed = unfollowed};
		watch->next = control->unfollowed_list;
		control->unfollowed_list = watch;
		if (watch_fd(control, watch))
			set_unfollowed_fate(control, watch, TARGET_LEFT);
	}
}

static bool is_executing(const struct target *target)
{
	return atomic_load_explicit(&target->view.header->state, memory_order_relaxed) ==
	       CHANNEL_EXECUTING;
}

/*
 * A pid is reused only after its process has ended; a process that called exec may have ended by
 * now too. If the kernel cannot distinguish them, the former image's state decides.
 */
static bool is_image_of(const struct target *target, const struct target *former)
{
	int is_same;

	if (!torsh_process_has_ended(former->pidfd))
		return true;
	is_same = torsh_process_is_same(former->pidfd, target->pidfd);
	if (is_same >= 0)
		return is_same > 0;
	return is_executing(former);
}

/*
 * A process that sends a second hello has become another image with the same parent; if it ended,
 * another process has its pid. Two waiting hellos may be received in reverse order: then this hello
 * is of the earlier image.
 */
static void end_former_image(struct control *control, struct target *target)
{
	struct watch *next;

	for (struct watch *watch = control->targets; watch; watch = next) {
		enum target_fate fate = TARGET_DIED;

		next = watch->next;
		if (watch->target->pid != target->pid ||
		    (is_executing(target) && !is_executing(watch->target)))
			continue;
		if (is_image_of(target, watch->target)) {
			fate = TARGET_EXECUTED;
			target->former_number = watch->target->number;
		}
		set_fate(control, watch, fate);
	}
}

static void attach(struct control *control, int fd, pid_t pid, int pidfd)
{
	struct watch *watch;
	struct target *target;
	int result = torsh_target_create(&target, fd, pid, pidfd);

	if (result) {
		fprintf(stderr, "torsh: the channel of process %d was refused: %s\n", (int)pid,
			result == -EPROTO ? "another version's layout" : strerror(-result));
		if (pidfd >= 0)
			close(pidfd);
		return;
	}
	target->number = (uint32_t)++control->n_targets;
	end_former_image(control, target);
	watch = torsh_memory_new(1, sizeof(*watch));
	*watch = (struct watch){.kind = WATCH_TARGET, .fd = target->pidfd, .target = target};
	watch->next = control->targets;
	control->targets = watch;
	control->last_change_ns = torsh_clock_monotonic_ns();
	torsh_drain_add(control->drain, target);
	if (pidfd < 0)
		set_fate(control, watch, TARGET_DIED);
	else if (watch_fd(control, watch))
		set_fate(control, watch, TARGET_LEFT);
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
	drop_watch(control, &control->clients, watch);
}

static void put_messages(FILE *out, int fd)
{
	char bytes[4096];
	ssize_t n;
	off_t at = 0;

	while (fd >= 0 && (n = pread(fd, bytes, sizeof(bytes), at)) > 0) {
		fwrite(bytes, 1, (size_t)n, out);
		at += n;
	}
}

/* Let the first process continue. */
static void reply_to_exit(struct control *control)
{
	const struct control_options *options = control->options;
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (out) {
		fputs(control->summary, out);
		put_messages(out, control->messages_fd);
		if (options->export_early && !control->has_exported && !options->has_summary)
			fputs("torsh: not all that was to be exported could be written: `torsh export` prints the reason\n",
			      out);
		fclose(out);
	}
	if (text)
		torsh_terminal_clean(text);
	torsh_drain_reply_to_exit(control->drain, text ? text : "");
	free(text);
	if (control->messages_fd >= 0)
		close(control->messages_fd);
	control->messages_fd = -1;
}

/* The child has ended, or is about to. */
static void end_export(struct control *control)
{
	int status = -1;

	while (waitpid(control->export_pid, &status, 0) < 0 && errno == EINTR)
		;
	control->has_exported = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	control->export_pid = 0;
	epoll_ctl(control->epoll_fd, EPOLL_CTL_DEL, control->export.fd, NULL);
	close(control->export.fd);
	control->export.fd = -1;
	reply_to_exit(control);
}

/* Stop the child: its work is repeated at the end. */
static void stop_export(struct control *control)
{
	if (control->export_pid <= 0)
		return;
	kill(-control->export_pid, SIGKILL);
	end_export(control);
}

/*
 * The first process waits at its exit: all its events are folded, and the request contains the
 * summary that it prints.
 */
static void begin_exit_reply(struct control *control, const struct queued_request *queued)
{
	const struct control_options *options = control->options;

	control->summary = torsh_memory_text(queued->text ? queued->text : "");
	if (!options->export_early) {
		reply_to_exit(control);
		return;
	}
	control->messages_fd = memfd_create("torsh-messages", MFD_CLOEXEC);
	control->export_pid = options->export_early(options->context, control->messages_fd);
	control->export.fd = control->export_pid > 0 ? torsh_process_open(control->export_pid) : -1;
	if (control->export.fd >= 0 && !watch_fd(control, &control->export))
		return;
	if (control->export_pid > 0)
		stop_export(control);
	else
		reply_to_exit(control);
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
		drop_watch(control, &control->clients, watch);
		return;
	}
	if (message.kind == CLIENT_REQUEST && message.request.verb == REQUEST_END) {
		answer_now(control, watch, message.request.verb, 0);
		control->must_end = true;
		return;
	}
	if (message.kind == CLIENT_REQUEST) {
		watch->queued = torsh_queued_request_create(&message.request, watch);
		torsh_drain_request(control->drain, watch->queued);
		return;
	}
	pidfd = torsh_process_of_peer(watch->fd, message.pid);
	drop_watch(control, &control->clients, watch);
	attach(control, message.channel_fd, message.pid, pidfd);
}

/* A client that has closed its connection gets no answer. */
static void send_answers(struct control *control)
{
	struct queued_request *queued;

	clear_event(control, control->options->answer_fd);
	while ((queued = torsh_drain_take_answer(control->drain))) {
		struct watch *watch = queued->client;

		if (queued->request.verb == REQUEST_EXIT_REPLY)
			begin_exit_reply(control, queued);
		if (watch) {
			torsh_client_answer(watch->fd, &queued->answer, queued->fds, 2);
			drop_watch(control, &control->clients, watch);
		}
		torsh_queued_request_destroy(queued);
	}
}

static void drop_oldest_client(struct control *control)
{
	struct watch *oldest = control->clients;

	while (oldest->next)
		oldest = oldest->next;
	drop_watch(control, &control->clients, oldest);
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
		if (watch_fd(control, watch)) {
			drop_watch(control, &control->clients, watch);
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
		take_unfollowed(control);
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
			set_fate(control, watch, TARGET_DIED);
		break;
	case WATCH_EXPORT:
		end_export(control);
		break;
	case WATCH_UNFOLLOWED:
		/* Likewise, it may have become a program that can be followed. */
		accept_clients(control);
		set_unfollowed_fate(control, watch, TARGET_DIED);
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
	return !torsh_drain_has_pending_child(control->drain);
}

static void leave_all(struct control *control)
{
	while (control->targets)
		set_fate(control, control->targets, TARGET_LEFT);
	while (control->clients)
		drop_watch(control, &control->clients, control->clients);
	while (control->unfollowed_list)
		drop_watch(control, &control->unfollowed_list, control->unfollowed_list);
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

/*
 * Publish the drain thread's CPU time. Producers that wait for room read it to see whether the
 * drain thread makes progress, because they must not make system calls for it.
 */
static void publish_cpu_time(const struct control *control)
{
	uint64_t cpu_ns = torsh_drain_cpu_ns(control->drain);

	for (const struct watch *watch = control->targets; watch; watch = watch->next)
		atomic_store_explicit(&watch->target->view.header->writer_cpu_ns, cpu_ns,
				      memory_order_relaxed);
}

static int serve(struct control *control)
{
	int timeout_ms;

	while (!control->must_end && !is_over(control, &timeout_ms)) {
		struct epoll_event events[64];
		int n = epoll_wait(control->epoll_fd, events, 64,
				   timeout_ms < 0 ? PULSE_MS : timeout_ms);

		publish_cpu_time(control);
		if (n < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < n; i++)
			handle(control, events[i].data.ptr);
		free_gone(control);
	}
	return !control->must_end;
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
	result = watch_fd(&control, &control.socket);
	if (!result)
		result = watch_fd(&control, &control.done);
	if (!result)
		result = watch_fd(&control, &control.answer);
	if (!result)
		result = serve(&control);
	/* From here on no process can connect; existing connections are served to the end. */
	remove_socket(options->socket_path);
	accept_clients(&control);
	if (result == 1)
		result = serve(&control);
	stop_export(&control);
	*has_exported = control.has_exported;
	leave_all(&control);
	wait_for_drain(&control);
	free(control.summary);
	close(control.epoll_fd);
	return result;
}
