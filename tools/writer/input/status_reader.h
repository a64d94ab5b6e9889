/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The thread that reads /proc/PID/status of the targets that request it
 * (agent/session/status_request.h) and wait meanwhile. It is none of the others: these may be busy
 * for long.
 */
#ifndef TORSH_WRITER_INPUT_STATUS_READER_H
#define TORSH_WRITER_INPUT_STATUS_READER_H

#include "tools/writer/input/target.h"

struct status_reader;

/* Returns NULL where there can be no thread. */
struct status_reader *torsh_status_reader_start(void);
void torsh_status_reader_stop(struct status_reader *reader);

/* From now on the target's requests are answered; any thread. */
void torsh_status_reader_add(struct status_reader *reader, struct target *target);

/* When this returns the reader is done with it. */
void torsh_status_reader_remove(struct status_reader *reader, const struct target *target);

#endif
