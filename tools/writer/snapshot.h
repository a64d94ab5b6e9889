/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What goes out to somebody who looks on: recordings in memory, never in files of theirs, so that whatever they do with
 * it no one waits. Made by the drain thread, of targets that it has stopped folding for that moment.
 */
#ifndef TORSH_WRITER_SNAPSHOT_H
#define TORSH_WRITER_SNAPSHOT_H

#include "tools/writer/rows.h"

#define SNAPSHOT_ALL UINT32_MAX

/*
 * The session, and each target for itself with its n_holders largest stacks; SNAPSHOT_ALL: what the targets' recording
 * lacks so far, to be read behind that. Returns a memfd that is the caller's, or -errno.
 */
int torsh_snapshot_make(const struct rows_session *session, struct target *const *targets, uint32_t n_targets,
			uint32_t n_holders);

#endif
