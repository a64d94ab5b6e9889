/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A comparison as text, as JSON and as a page. */
#ifndef TORSH_COMMAND_DIFF_DIFF_REPORT_H
#define TORSH_COMMAND_DIFF_DIFF_REPORT_H

#include "tools/base/json_writer.h"
#include "tools/command/diff/growth_limits.h"

#define DIFF_JSON_LIMIT 1000 /* default limit on the rows of a table */

struct diff_view {
	const struct comparison *comparison;
	const struct growth_limits *limits;
	bool has_limit;
	size_t limit; /* rows printed per table; 0: all */
	const char *const *paths; /* of the recordings, those before first */
};

/* Print it as JSON: tools/schema/diff.json. */
void torsh_diff_json(const struct diff_view *view);

/* Returns the side with the frames to show: after, unless the row is gone. */
const struct place *torsh_diff_place(const struct compare_row *row);

/* Put that JSON into a document. */
void torsh_diff_put_json(struct json_writer *json, const struct diff_view *view);

/*
 * Write a page for a web browser to a file, "-": standard output; with fewer rows if the file
 * would be too large. Ends the program if it cannot be written.
 */
void torsh_diff_html(const struct diff_view *view, const char *path);

/* Print it as text: totals, then the changes of each table. */
void torsh_diff_text(const struct diff_view *view);

#endif
