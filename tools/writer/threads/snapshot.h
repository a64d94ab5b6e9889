/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What goes out to somebody who looks on: recordings in memory, never in files of theirs, so that
 * whatever they do with it no one waits. Made by the drain thread, of targets that it has stopped
 * folding for that moment.
 */
#ifndef TORSH_WRITER_THREADS_SNAPSHOT_H
#define TORSH_WRITER_THREADS_SNAPSHOT_H

#include "tools/writer/output/rows/rows.h"

#define SNAPSHOT_ALL UINT32_MAX

struct snapshot {
	struct rows_session session;
	struct target *const *targets;
	uint32_t n_targets;
	struct session_heap *session_heap; /* their sum, settled; NULL: there is none */
	const struct clock_conversion *session_clock;

	/*
	 * So many holders of each target, for itself; SNAPSHOT_ALL: what the targets' recording
	 * lacks so far, to be read behind that.
	 */
	uint32_t n_sites;
};

/* Returns a memfd that is the caller's, or -errno. */
int torsh_snapshot_make(const struct snapshot *snapshot);

#endif
