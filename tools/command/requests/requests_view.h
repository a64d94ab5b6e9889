/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* torsh requests: what its text and its JSON print. */
#ifndef TORSH_COMMAND_REQUESTS_REQUESTS_VIEW_H
#define TORSH_COMMAND_REQUESTS_REQUESTS_VIEW_H

#include "tools/command/reading.h"
#include "tools/cpu/task_rows.h"

#define REQUESTS_TRACE_BYTES 33u

struct requests_view {
	const struct reading *reading;
	const struct read_options *options;
	struct task_rows rows; /* singles in the order of --sort */
	const struct task_row **order; /* the rows in that order */
};

/* "4bf92f3577b34da6a3ce929d0e0e4736"; NULL: the request has none. */
const char *torsh_requests_trace(const struct recorded_task *task, char text[REQUESTS_TRACE_BYTES]);

/* Whether all of the row are shared, so that only times are known. */
static inline bool torsh_requests_is_shared(const struct task_row *row)
{
	return row->n_shared && row->n_shared == row->n_begun;
}

/* Print it. */
void torsh_requests_json(const struct requests_view *view);
void torsh_requests_text(const struct requests_view *view);

#endif
