/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The copy that a process makes of itself where it waits at its exit (agent/session/exit_copy.h):
 * its memory is read instead, and the process goes on.
 */
#ifndef TORSH_WRITER_REACHABILITY_IMAGE_PROCESS_COPY_H
#define TORSH_WRITER_REACHABILITY_IMAGE_PROCESS_COPY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/wire/channel.h"

struct process_copy {
	struct channel_copy *channel; /* of the process's channel; NULL: there is no copy */
	pid_t pid;
	int pidfd;
};

/* Request a copy from the process, which waits for this answer. */
void torsh_process_copy_request(_Atomic uint32_t *answer);

/*
 * Wait for the copy of that process for a short time. Returns 0 and opens it; -EAGAIN: call again;
 * or another -errno, also where the copy lacks memory of the process, as after
 * madvise(MADV_DONTFORK). The process must do nothing else meanwhile.
 */
int torsh_process_copy_await(struct process_copy *copy, struct channel_copy *channel,
			     pid_t process);

/* No copy is needed, whether there is one or one may come: it ends. */
void torsh_process_copy_refuse(struct channel_copy *channel, struct process_copy *copy);

/* Returns whether it still has its memory: nobody has killed it. */
bool torsh_process_copy_is_there(const struct process_copy *copy);

/* It is not needed any more: it ends. */
void torsh_process_copy_end(struct process_copy *copy);

#endif
