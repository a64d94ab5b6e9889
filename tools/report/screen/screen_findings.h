/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Findings on the screen: sentences with their numbers, a suggestion, and the command that shows
 * more.
 */
#ifndef TORSH_REPORT_SCREEN_SCREEN_FINDINGS_H
#define TORSH_REPORT_SCREEN_SCREEN_FINDINGS_H

#include "tools/analysis/analysis.h"
#include "tools/symbols/symbols.h"

/*
 * Print the worst finding of the worst rules, up to about that row of the screen, and a line about
 * the rules that were not evaluated.
 */
void torsh_screen_findings(const struct analysis *analysis, struct symbols *symbols,
			   size_t last_row);

/* Print what the recording itself cost, if it is worth a line; a severe cost is a finding. */
void torsh_screen_remark(const struct analysis *analysis, struct symbols *symbols);

#endif
