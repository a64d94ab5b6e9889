/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Syncs what was written to the disk, on a thread of its own: the disk may be slow, the targets'
 * rings don't wait.
 */
#ifndef TORSH_WRITER_THREADS_SYNCER_H
#define TORSH_WRITER_THREADS_SYNCER_H

struct syncer;

/*
 * Start it for fd, which stays the caller's. NULL where it can't be started: then the kernel
 * decides when to write.
 */
struct syncer *torsh_syncer_start(int fd);

/* Sync what is written by now. Requests that come while the disk is busy count as one. */
void torsh_syncer_request(struct syncer *syncer);

/* Wait for what was requested and free it. NULL: nothing. */
void torsh_syncer_stop(struct syncer *syncer);

#endif
