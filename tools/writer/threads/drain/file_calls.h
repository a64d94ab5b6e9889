/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls of programs by torsh.h that write a file of the session. The torsh command writes it, which
 * is a client of this writer as any other; a thread waits for it, so the drain goes on.
 */
#ifndef TORSH_WRITER_THREADS_DRAIN_FILE_CALLS_H
#define TORSH_WRITER_THREADS_DRAIN_FILE_CALLS_H

#include "tools/writer/input/target.h"
#include "tools/writer/threads/mailbox.h"
#include "tools/writer/threads/request_queue.h"

struct file_call;

/* Owned by the drain thread. */
struct file_calls {
	const char *recording_path, *socket_path;
	struct mailbox *mailbox; /* to wake the drain */
	struct file_call *first; /* that are under way */
};

/* Start the command for a call; it is answered at once if that fails. */
void torsh_file_call_begin(struct file_calls *calls, struct target *target,
			   const struct program_call *call);

/* Answer the calls with files that are written. */
void torsh_file_calls_answer(struct file_calls *calls, struct target *const *targets,
			     uint32_t n_targets);

/* Kill the commands that still run, and free the calls. */
void torsh_file_calls_destroy(struct file_calls *calls);

#endif
