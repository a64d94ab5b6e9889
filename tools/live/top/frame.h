/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One frame of `torsh top` as lines of text: the queried sessions, their processes, and the source
 * lines that hold most memory. The screen that draws it does not access sessions.
 */
#ifndef TORSH_LIVE_TOP_FRAME_H
#define TORSH_LIVE_TOP_FRAME_H

#include "tools/live/live.h"
#include "tools/symbols/symbols.h"

#define TOP_SITES 1024u /* requested per process; a line may have several */

enum top_order { TOP_BY_LIVE, TOP_BY_PEAK, TOP_BY_RATE, TOP_BY_PID, N_TOP_ORDERS };

/* What a process had done at the last query. */
struct top_past {
	uint32_t writer_pid, process;
	uint64_t produced, at_ns;
};

struct top {
	struct symbols *symbols; /* freed with it */
	struct live_sessions sessions;
	char *socket_path; /* of the selected session; NULL: all */
	enum top_order order;
	bool is_held; /* no session is queried any more */
	struct top_past *past;
	size_t n_past;
};

/*
 * Show only one session, given by the pid of a process or a writer. Returns false if there is none.
 */
bool torsh_top_choose(struct top *top, uint32_t pid);

/* Query again. Returns false if that session has ended. */
bool torsh_top_look(struct top *top);

/* Free the frame. */
void torsh_top_free(struct top *top);

struct top_line {
	char *text;
	bool is_heading;
};

struct top_frame {
	struct top_line *lines;
	size_t n, n_room;
};

/*
 * Build a frame of at most n_processes and n_sites, 0: all; names are cut to `columns`, 0: not at
 * all.
 */
void torsh_top_frame(struct top_frame *frame, const struct top *top, size_t n_processes,
		     size_t n_sites, size_t n_columns);

/* Free its lines. */
void torsh_top_frame_free(struct top_frame *frame);

#endif
