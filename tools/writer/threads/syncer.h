/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Brings what was written to the disk, on a thread of its own: the disk may take its time, the
 * targets' rings don't wait.
 */
#ifndef TORSH_WRITER_THREADS_SYNCER_H
#define TORSH_WRITER_THREADS_SYNCER_H

struct syncer;

/* For fd, which stays the caller's. NULL: it can't be started, the kernel writes when it likes. */
struct syncer *torsh_syncer_start(int fd);

/*
 * What is written by now is to be synced. One request counts, however many come while the disk is
 * busy.
 */
void torsh_syncer_request(struct syncer *syncer);

/* Waits for what was requested. NULL: nothing. */
void torsh_syncer_stop(struct syncer *syncer);

#endif
