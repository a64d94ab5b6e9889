/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Allocation sites for people: a line each, with the line to blame, and below it the frames that
 * matter.
 */
#ifndef TORSH_REPORT_SITES_SITE_ROWS_H
#define TORSH_REPORT_SITES_SITE_ROWS_H

#include <stdio.h>

#include "tools/memory/allocation_sites.h"

struct site_rows {
	const char *heading; /* of the bytes: "LEAKED" */
	const struct allocation_site *items; /* named */
	size_t n;
	uint64_t whole_bytes; /* that shares are of; 0: no shares */
	bool with_pid;
	bool is_change; /* blocks are a difference, which may be below 0 */
	bool has_growth; /* bytes and blocks are of the later steps, and grow */
	size_t max_rows; /* of frames per site; 0: all */
};

/* Print the heading and the sites. */
void torsh_site_rows_print(FILE *out, const struct site_rows *rows);

/* Returns the number of different lines of the user's own that these sites are blamed on. */
size_t torsh_site_rows_lines(const struct allocation_site *sites, size_t n);

/*
 * Returns true if a site allocated in most of the steps from its first to its last; *bytes is what
 * it allocated per step.
 */
bool torsh_site_grows(const struct allocation_site *site, uint64_t *bytes);

#endif
