/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a process held when an allocator of its framework ran out of memory: a recording of its own
 * next to the session's, for every reading command, and a note in the session's. Called by the
 * drain thread, at the event and before anything younger is folded.
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
 * Keep what the target holds, in NAME.out-of-memory/N.torsh next to NAME.torsh; session is that of
 * a snapshot. From the fifth on there is only a note: a program may go on by trying less again and
 * again. Afterwards the target can be folded further.
 */
void torsh_out_of_memory_keep(struct out_of_memory *kept, struct target *target,
			      const struct rows_session *session);

#endif
