/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The thread that reads /proc/PID/status for targets that request it
 * (agent/session/status_request.h) and wait for the answer. It is separate because the other
 * threads may be busy for a long time.
 */
#ifndef TORSH_WRITER_INPUT_STATUS_READER_H
#define TORSH_WRITER_INPUT_STATUS_READER_H

#include "tools/writer/input/target.h"

struct status_reader;

/* Start the thread. Returns NULL where that fails. */
struct status_reader *torsh_status_reader_start(void);

/* Stop the thread and free it. NULL is ignored. */
void torsh_status_reader_stop(struct status_reader *reader);

/* Answer the target's requests from now on; any thread may call. */
void torsh_status_reader_add(struct status_reader *reader, struct target *target);

/* Remove the target; when this returns, the reader does not use it any more. */
void torsh_status_reader_remove(struct status_reader *reader, const struct target *target);

#endif
