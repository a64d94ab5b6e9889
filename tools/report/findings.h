/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the rules of tools/analysis found, as JSON and as a section of a page. */
#ifndef TORSH_REPORT_FINDINGS_H
#define TORSH_REPORT_FINDINGS_H

#include "tools/analysis/analysis.h"
#include "tools/base/json.h"
#include "tools/symbols/symbols.h"

/* The findings, the worst first. symbols may be NULL: then no lines are named. */
cJSON *torsh_findings_json(const struct analysis *analysis, struct symbols *symbols);

/* Each rule once: what became of it, and its limits. */
cJSON *torsh_rules_json(const struct analysis *analysis);

/* The worst of at most so many rules; nothing where there were neither devices nor operators to judge. */
void torsh_findings_text(const struct analysis *analysis, struct symbols *symbols, size_t limit);

#endif
