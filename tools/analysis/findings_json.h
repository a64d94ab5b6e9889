/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the rules found, as JSON: for the report and for the recording's file. */
#ifndef TORSH_ANALYSIS_FINDINGS_JSON_H
#define TORSH_ANALYSIS_FINDINGS_JSON_H

#include "tools/analysis/analysis.h"
#include "tools/base/json.h"
#include "tools/symbols/symbols.h"

/*
 * The findings, the worst first. symbols may be NULL: then no lines are named. The caller owns the
 * list.
 */
cJSON *torsh_findings_json(const struct analysis *analysis, struct symbols *symbols);

/* Each rule once: its state, why it was not evaluated, and its limits. The caller owns the list. */
cJSON *torsh_rules_json(const struct analysis *analysis);

/* The line of the program that a finding points at; NULL: unknown. The caller frees it. */
char *torsh_finding_line(const struct finding *finding, struct symbols *symbols);

/* The demangled name of its kernel; NULL: it has none. Owned by symbols or by the finding. */
const char *torsh_finding_kernel(const struct finding *finding, struct symbols *symbols);

#endif
