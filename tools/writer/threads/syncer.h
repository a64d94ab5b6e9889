/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Syncs written data to the disk on a separate thread: the disk may be slow, and the targets' rings
 * must not wait.
 */
#ifndef TORSH_WRITER_THREADS_SYNCER_H
#define TORSH_WRITER_THREADS_SYNCER_H

struct syncer;

/*
 * Start a syncer for fd, which stays the caller's. Returns NULL on failure: then the kernel decides
 * when to write.
 */
struct syncer *torsh_syncer_start(int fd);

/* Sync everything written so far. Requests that arrive while the disk is busy are merged. */
void torsh_syncer_request(struct syncer *syncer);

/* Wait for the requested syncs and free it. NULL is ignored. */
void torsh_syncer_stop(struct syncer *syncer);

#endif
