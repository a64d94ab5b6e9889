/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the rules of tools/analysis found, as a section of a page. */
#ifndef TORSH_REPORT_FINDINGS_H
#define TORSH_REPORT_FINDINGS_H

#include "tools/analysis/analysis.h"
#include "tools/symbols/symbols.h"

/*
 * The worst of at most so many rules; nothing where there were neither devices nor operators to
 * judge.
 */
void torsh_findings_text(const struct analysis *analysis, struct symbols *symbols, size_t limit);

#endif
