/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Allocation sites as text: a line each, with the attributed line, and below it the relevant
 * frames.
 */
#ifndef TORSH_REPORT_SITES_SITE_ROWS_H
#define TORSH_REPORT_SITES_SITE_ROWS_H

#include <stdio.h>

#include "tools/memory/allocation_sites.h"
#include "tools/report/sites/holder_report.h"

struct site_rows {
	const char *heading; /* of the column of bytes: "LEAKED" */
	const struct allocation_site *items; /* named */
	size_t n;
	uint64_t whole_bytes; /* 100 % of the shares; 0: no shares */
	bool with_pid;
	bool is_change; /* blocks are differences, which may be negative */
	bool has_growth; /* bytes and blocks are growth */
	bool is_over_time; /* the growth is in a second, not in a step */
	size_t max_rows; /* of frames per site; 0: all */
	const struct holder_view *holders; /* also show who keeps them; NULL: don't */
};

/* Print the heading and the sites. */
void torsh_site_rows_print(FILE *out, const struct site_rows *rows);

/* Returns the number of different own lines that these sites are attributed to. */
size_t torsh_site_rows_lines(const struct allocation_site *sites, size_t n);

/*
 * Returns true if a site allocated in most of the steps from its first to its last; *bytes is its
 * average per step.
 */
bool torsh_site_grows(const struct allocation_site *site, uint64_t *bytes);

#endif
