/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The inside of the control thread: control.c has the loop, the clients and the end of the session,
 * control_targets.c the processes that are watched, control_exit.c what the first process gets when
 * it exits. All functions here are the control thread's.
 */
#ifndef TORSH_WRITER_THREADS_CONTROL_STATE_H
#define TORSH_WRITER_THREADS_CONTROL_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/writer/threads/control.h"

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
	bool was_stopped; /* REQUEST_STOP: the recording is complete */
};

/* Have epoll report on the watch's descriptor. Returns 0 or -errno. */
int torsh_control_watch(struct control *control, struct watch *watch);

/*
 * Take the watch out of its list; it is freed when no event can name it. The descriptor of a
 * target's or an unfollowed process's watch is theirs; a client's is the watch's own, and closed.
 */
void torsh_control_drop(struct control *control, struct watch **list, struct watch *watch);

/*
 * A hello arrived from this process with the channel behind fd; pidfd is -1 where it has ended
 * already. Both descriptors are taken.
 */
void torsh_control_attach(struct control *control, int fd, pid_t pid, int pidfd);

/* Watch the unfollowed processes that the drain has found since the last call. */
void torsh_control_take_unfollowed(struct control *control);

/* Hand the watch's target back: from here on only the drain uses it. */
void torsh_control_set_fate(struct control *control, struct watch *watch, enum target_fate fate);

/* The same for an unfollowed process. */
void torsh_control_set_unfollowed_fate(struct control *control, struct watch *watch,
				       enum target_fate fate);

/*
 * Let all targets rest from now on: none of them is recorded any more. Returns 0, or -EOPNOTSUPP if
 * one can't rest: nothing is changed then.
 */
int torsh_control_let_rest(struct control *control);

/*
 * Publish the drain thread's CPU time. Producers that wait for room read it to see whether the
 * drain thread makes progress, because they must not make system calls for it.
 */
void torsh_control_publish_cpu_time(const struct control *control);

/*
 * The first process waits at its exit: all its events are folded, and the request contains the
 * summary that it prints. Start the export that it waits for, or let it continue.
 */
void torsh_control_begin_exit_reply(struct control *control, const struct queued_request *queued);

/* The export's child has ended, or is about to: let the first process continue. */
void torsh_control_end_export(struct control *control);

/* Stop the export, if one runs: its work is repeated at the end. */
void torsh_control_stop_export(struct control *control);

#endif
