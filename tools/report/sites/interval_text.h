/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The 95 % intervals of estimates from sampled blocks, as text. */
#ifndef TORSH_REPORT_SITES_INTERVAL_TEXT_H
#define TORSH_REPORT_SITES_INTERVAL_TEXT_H

#include <stdio.h>

#include "tools/memory/allocation_sites.h"

/*
 * Print a line with the intervals of the estimated bytes and blocks, after the indent; nothing if
 * they are exact.
 */
void torsh_interval_text(FILE *out, const char *indent, uint64_t bytes, uint64_t blocks,
			 struct estimate_variance variance);

#endif
