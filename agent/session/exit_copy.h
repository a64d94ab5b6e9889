/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A copy of this process at a moment of its exit, from which the writer reads what the process had
 * then, while that goes on. The copy runs none of the program's code: it waits until it was read,
 * and ends. It is an orphan that no wait() of the program finds, in a session of its own, without
 * descriptors, and the kernel's first choice where memory is short.
 */
#ifndef TORSH_AGENT_SESSION_EXIT_COPY_H
#define TORSH_AGENT_SESSION_EXIT_COPY_H

#include <stdbool.h>

#include "agent/wire/channel.h"

/*
 * Copy the process, on a thread that nothing else of the process may disturb: the others are
 * stopped, or there are none. names_writer: the copy names the writer to Yama. Returns the copy's
 * number in this PID namespace, or -errno: -ENOSYS before Linux 5.9, -EBUSY where the process is
 * the one that orphans are given to.
 */
int torsh_exit_copy_make(struct channel_header *header, struct channel_copy *copy,
			 bool names_writer);

#endif
