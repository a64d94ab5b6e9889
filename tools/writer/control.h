/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The thread that watches: it takes hellos and requests from the socket, learns from pidfds when targets end, and ends the session
 * when nobody is left. It runs on the main thread and knows nothing of events.
 */
#ifndef TORSH_WRITER_CONTROL_H
#define TORSH_WRITER_CONTROL_H

#include "tools/writer/drain.h"

struct control_options {
	int socket_fd; /* listening, AF_UNIX, SOCK_SEQPACKET */
	const char *socket_path; /* removed at the end, with its directory */
	int signal_fd; /* readable when the writer is to end */
	int done_fd, answer_fd; /* the drain's */
	int first_pidfd; /* of the process that began the session: no hello is waited for after its end. Or -errno */
};

/*
 * Serve until the session is over. Returns 1 when all targets had ended, 0 when the writer was told to end before
 * that, or -errno. All targets are finished then, in each case.
 */
int torsh_control_run(const struct control_options *options, struct drain *drain);

#endif
