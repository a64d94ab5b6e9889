/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The thread that watches: it receives hellos and requests from the socket, watches by pidfds when
 * targets end, and ends the session after the last one. It runs on the main thread and handles no
 * events.
 */
#ifndef TORSH_WRITER_THREADS_CONTROL_H
#define TORSH_WRITER_THREADS_CONTROL_H

#include <stdbool.h>

#include "tools/writer/threads/drain/drain.h"

struct control_options {
	int socket_fd; /* listening, AF_UNIX, SOCK_SEQPACKET */
	const char *socket_path; /* removed at the end, with its directory */
	int done_fd, answer_fd; /* the drain's */
	pid_t first_pid; /* of the process that began the session; 0: not known */
	int first_pidfd; /* of the same: no hello is waited for after its end. Or -errno */

	/*
	 * Starts a child that exports what the session has so far, for the first process to find
	 * when it ends; its messages go to messages_fd. Returns its pid, or -errno. NULL: nothing
	 * is to be exported.
	 */
	pid_t (*export_early)(void *context, int messages_fd);
	bool has_summary; /* the first process prints one */
	void *context;
};

/*
 * Serve until the session is over. Returns 1 when all targets had ended, 0 when the writer had to
 * end before that (REQUEST_END, or too little memory), or -errno. All targets are finished then, in
 * each case. *has_exported: all was exported for the first process.
 */
int torsh_control_run(const struct control_options *options, struct drain *drain,
		      bool *has_exported);

#endif
