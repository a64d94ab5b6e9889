/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The control thread: it receives hellos and requests from the socket, watches the targets' pidfds,
 * and ends the session after the last target. It runs on the main thread and handles no events.
 */
#ifndef TORSH_WRITER_THREADS_CONTROL_H
#define TORSH_WRITER_THREADS_CONTROL_H

#include <stdbool.h>

#include "tools/writer/threads/drain/drain.h"

struct control_options {
	int socket_fd; /* listening, AF_UNIX, SOCK_SEQPACKET */
	const char *socket_path; /* removed at the end, with its directory */
	int done_fd, answer_fd; /* owned by the drain */
	pid_t first_pid; /* of the process that began the session; 0: unknown */
	int first_pidfd; /* pidfd of first_pid: after its end no hello is expected. Or -errno */

	/*
	 * Starts a child that exports the session so far, so that the first process finds the files
	 * when it ends; its messages go to messages_fd. Returns its pid, or -errno. NULL: nothing
	 * to export.
	 */
	pid_t (*export_early)(void *context, int messages_fd);
	bool has_summary; /* the first process prints one */
	void *context;
};

/*
 * Serve until the session is over. Returns 1 if all targets had ended, 0 if the writer had to end
 * before that (REQUEST_END, or too little memory), or -errno. In each case all targets are
 * finished. *has_exported: the exports for the first process are complete.
 */
int torsh_control_run(const struct control_options *options, struct drain *drain,
		      bool *has_exported);

#endif
