/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a process holds when an allocator of its framework runs out of memory: a separate recording
 * next to the session's, readable by every command, and a note in the session's recording. Called
 * by the drain thread at the event, before anything younger is folded.
 */
#ifndef TORSH_WRITER_THREADS_DRAIN_OUT_OF_MEMORY_H
#define TORSH_WRITER_THREADS_DRAIN_OUT_OF_MEMORY_H

#include "tools/writer/output/rows/rows.h"

struct out_of_memory {
	const char *recording; /* path of the session's */
	struct recording_limits limits; /* of each recording */
	uint32_t n_kept; /* in this session */
};

/*
 * Record what the target holds, in NAME.out-of-memory/N.torsh next to NAME.torsh; session is that
 * of a snapshot. From the fifth time on only a note is added, because a program may retry with
 * smaller sizes again and again. The target can be folded further afterwards.
 */
void torsh_out_of_memory_keep(struct out_of_memory *kept, struct target *target,
			      const struct rows_session *session);

#endif
