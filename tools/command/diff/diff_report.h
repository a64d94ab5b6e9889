/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A comparison as text and as JSON. */
#ifndef TORSH_COMMAND_DIFF_DIFF_REPORT_H
#define TORSH_COMMAND_DIFF_DIFF_REPORT_H

#include "tools/command/diff/growth_limits.h"

struct diff_view {
	const struct comparison *comparison;
	const struct growth_limits *limits;
	bool has_limit;
	size_t limit; /* rows of each table that are printed; 0: all */
};

/* Print it as JSON: tools/schema/diff.json. */
void torsh_diff_json(const struct diff_view *view);

/* Print it as text: totals, then what changed of each table. */
void torsh_diff_text(const struct diff_view *view);

#endif
