/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The findings of tools/analysis as a section of a page. */
#ifndef TORSH_REPORT_FINDINGS_H
#define TORSH_REPORT_FINDINGS_H

#include "tools/analysis/analysis.h"
#include "tools/symbols/symbols.h"

/*
 * Print the worst finding of at most n_rules rules; nothing if there were neither devices nor
 * operators to evaluate.
 */
void torsh_findings_text(const struct analysis *analysis, struct symbols *symbols, size_t limit);

#endif
