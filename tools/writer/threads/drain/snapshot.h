/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client's snapshot: a recording in memory, so that the writer never waits for a client's file.
 * Made by the drain thread, of targets that are held at one moment.
 */
#ifndef TORSH_WRITER_THREADS_DRAIN_SNAPSHOT_H
#define TORSH_WRITER_THREADS_DRAIN_SNAPSHOT_H

#include "tools/writer/output/rows/rows.h"

#define SNAPSHOT_ALL UINT32_MAX

struct snapshot {
	struct rows_session session;
	struct target *const *targets;
	uint32_t n_targets;
	struct session_heap *session_heap; /* their sum, settled; NULL: none */
	const struct clock_conversion *session_clock;

	/*
	 * At most so many allocation sites of each target; SNAPSHOT_ALL: everything that the
	 * recording lacks so far, to be read after it.
	 */
	uint32_t n_sites;
};

/* Write the snapshot. Returns a memfd that the caller owns, or -errno. */
int torsh_snapshot_make(const struct snapshot *snapshot);

#endif
