/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What torsh rss shows. */
#ifndef TORSH_COMMAND_RSS_RSS_VIEW_H
#define TORSH_COMMAND_RSS_RSS_VIEW_H

#include "tools/command/reading.h"
#include "tools/memory/rss/resident.h"

struct rss_view {
	const struct reading *reading;
	enum resident_moment moment;
	struct resident resident; /* of the process with most of them; its process may be NULL */
	size_t n_shown; /* owners of each kind in the text */
};

/* Print the report as JSON. */
void torsh_rss_json(const struct rss_view *view);

/* Print the report as text. */
void torsh_rss_text(const struct rss_view *view);

/* Returns why a process has no account; NULL: it has one. */
const char *torsh_rss_problem(const struct recorded_process *process);

#endif
