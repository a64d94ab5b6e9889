/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The findings of the rules, as JSON: for reports and for export files. */
#ifndef TORSH_ANALYSIS_FINDINGS_JSON_H
#define TORSH_ANALYSIS_FINDINGS_JSON_H

#include "tools/analysis/analysis.h"
#include "tools/base/json_writer.h"
#include "tools/symbols/symbols.h"

/*
 * Emit "inefficiencies": the findings, the worst first. symbols may be NULL: then no lines are
 * named.
 */
void torsh_findings_json(struct json_writer *json, const struct analysis *analysis,
			 struct symbols *symbols);

/* Emit "rules": each once, with its state, why it was not evaluated, and its limits. */
void torsh_rules_json(struct json_writer *json, const struct analysis *analysis);

/*
 * Returns the address in the page of torsh html that shows finding i: in the timeline, or among the
 * findings where no time shows it. The caller frees it.
 */
char *torsh_finding_anchor(const struct finding *finding, size_t i);

/* Returns the source line that a finding points at; NULL: unknown. The caller frees it. */
char *torsh_finding_line(const struct finding *finding, struct symbols *symbols);

/*
 * Returns the demangled name of its kernel; NULL: it has none. Owned by symbols or by the finding.
 */
const char *torsh_finding_kernel(const struct finding *finding, struct symbols *symbols);

#endif
