/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One frame of `torsh top` as lines of text: the sessions that were queried, their processes, and
 * the lines of source that hold most. The screen that draws it has no access to sessions.
 */
#ifndef TORSH_LIVE_TOP_FRAME_H
#define TORSH_LIVE_TOP_FRAME_H

#include "tools/live/live.h"
#include "tools/symbols/symbols.h"

#define TOP_SITES 1024u /* requested of each process; several may be of one line */

enum top_order { TOP_BY_LIVE, TOP_BY_PEAK, TOP_BY_RATE, TOP_BY_PID, N_TOP_ORDERS };

/* What a process had done when it was last looked at. */
struct top_past {
	uint32_t writer_pid, process;
	uint64_t produced, at_ns;
};

struct top {
	struct symbols *symbols; /* freed with it */
	struct live_sessions sessions;
	char *socket_path; /* of the one session that is looked at; NULL: all */
	enum top_order order;
	bool is_held; /* no session is queried any more */
	struct top_past *past;
	size_t n_past;
};

/* Look at one session only, that of a process or of a writer. Returns false when there is none. */
bool torsh_top_choose(struct top *top, uint32_t pid);

/* Ask once more. Returns false when that session is there no more. */
bool torsh_top_look(struct top *top);
void torsh_top_free(struct top *top);

struct top_line {
	char *text;
	bool is_heading;
};

struct top_frame {
	struct top_line *lines;
	size_t n, n_room;
};

/* At most so many processes and allocation sites; 0: all. */
void torsh_top_frame(struct top_frame *frame, const struct top *top, size_t n_processes,
		     size_t n_sites);

/* Free its lines. */
void torsh_top_frame_free(struct top_frame *frame);

#endif
