/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the rules found, as JSON: for the report and for the recording's file. */
#ifndef TORSH_ANALYSIS_FINDINGS_JSON_H
#define TORSH_ANALYSIS_FINDINGS_JSON_H

#include "tools/analysis/analysis.h"
#include "tools/base/json_writer.h"
#include "tools/symbols/symbols.h"

/* "inefficiencies": the findings, the worst first. symbols may be NULL: then no lines are named. */
void torsh_findings_json(struct json_writer *json, const struct analysis *analysis,
			 struct symbols *symbols);

/* "rules": each once, with its state, why it was not evaluated, and its limits. */
void torsh_rules_json(struct json_writer *json, const struct analysis *analysis);

/* The line of the program that a finding points at; NULL: unknown. The caller frees it. */
char *torsh_finding_line(const struct finding *finding, struct symbols *symbols);

/* The demangled name of its kernel; NULL: it has none. Owned by symbols or by the finding. */
const char *torsh_finding_kernel(const struct finding *finding, struct symbols *symbols);

#endif
