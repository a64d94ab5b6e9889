/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/analysis/findings_json.h"

#include <stdlib.h>
#include <string.h>

#include "tools/symbols/frame_text.h"

static cJSON *make_limit(const struct limit_words *limit)
{
	cJSON *object = torsh_json_object();

	torsh_json_set(object, "side", torsh_json_text(torsh_side_names[limit->side]));
	torsh_json_set(object, "value", torsh_json_double(limit->value));
	return object;
}

static cJSON *make_evidence(const struct finding *finding)
{
	cJSON *list = torsh_json_list();

	for (size_t i = 0; i < finding->n_evidence; i++) {
		const struct evidence *evidence = &finding->evidence[i];
		cJSON *object = torsh_json_object();

		torsh_json_set(object, "name", torsh_json_text(evidence->name));
		torsh_json_set(object, "value", torsh_json_double(evidence->value));
		torsh_json_set(object, "unit", torsh_json_text(evidence->unit));
		torsh_json_set(object, "limit",
			       evidence->limit ? make_limit(evidence->limit)
					       : torsh_json_text(NULL));
		torsh_json_add(list, object);
	}
	return list;
}

char *torsh_finding_line(const struct finding *finding, struct symbols *symbols)
{
	char *line = finding->stack && symbols
			     ? torsh_stack_line_text(finding->process, finding->stack, symbols)
			     : NULL;

	if (line && !*line) {
		free(line);
		line = NULL;
	}
	return line;
}

const char *torsh_finding_kernel(const struct finding *finding, struct symbols *symbols)
{
	return finding->kernel && symbols ? torsh_symbols_demangle(symbols, finding->kernel)
					  : finding->kernel;
}

static cJSON *make_where(const struct finding *finding, struct symbols *symbols)
{
	cJSON *object = torsh_json_object();
	char *line = torsh_finding_line(finding, symbols);

	torsh_json_set(object, "pid", torsh_json_u64(finding->process->pid));
	torsh_json_set(object, "device_id",
		       finding->has_device ? torsh_json_u64(finding->device)
					   : torsh_json_text(NULL));
	torsh_json_set(object, "operator_name", torsh_json_text(finding->operator_name));
	torsh_json_set(object, "kernel_name",
		       torsh_json_text(torsh_finding_kernel(finding, symbols)));
	torsh_json_set(object, "api", torsh_json_text(finding->api));
	torsh_json_set(object, "source_line", torsh_json_text(line));
	free(line);
	return object;
}

static cJSON *make_finding(const struct finding *finding, struct symbols *symbols)
{
	const struct rule_words *rule = &torsh_rules[finding->rule];
	cJSON *object = torsh_json_object();

	torsh_json_set(object, "kind", torsh_json_text(torsh_analysis_kind_names[rule->kind]));
	torsh_json_set(object, "rule", torsh_json_text(rule->name));
	torsh_json_set(object, "severity",
		       torsh_json_text(torsh_severity_names[finding->severity]));
	torsh_json_set(object, "share_pct", torsh_json_double(finding->share_pct));
	torsh_json_set(object, "share_of", torsh_json_text(finding->share_of));
	torsh_json_set(object, "where", make_where(finding, symbols));
	torsh_json_set(object, "evidence", make_evidence(finding));
	torsh_json_set(object, "description", torsh_json_text(rule->description));
	torsh_json_set(object, "suggestion", torsh_json_text(rule->suggestion));
	torsh_json_set(object, "note", torsh_json_text(finding->note));
	return object;
}

cJSON *torsh_findings_json(const struct analysis *analysis, struct symbols *symbols)
{
	cJSON *list = torsh_json_list();

	for (size_t i = 0; i < analysis->n; i++)
		torsh_json_add(list, make_finding(&analysis->findings[i], symbols));
	return list;
}

static cJSON *make_limits(enum rule rule)
{
	cJSON *list = torsh_json_list();

	for (int i = 0; i < N_LIMITS; i++) {
		cJSON *object;

		if (torsh_limits[i].rule != rule)
			continue;
		object = make_limit(&torsh_limits[i]);
		torsh_json_set(object, "name", torsh_json_text(torsh_limits[i].name));
		torsh_json_set(object, "unit", torsh_json_text(torsh_limits[i].unit));
		torsh_json_add(list, object);
	}
	return list;
}

cJSON *torsh_rules_json(const struct analysis *analysis)
{
	cJSON *list = torsh_json_list();

	for (int i = 0; i < N_RULES; i++) {
		const struct rule_result *result = &analysis->rules[i];
		cJSON *object = torsh_json_object();

		torsh_json_set(object, "rule", torsh_json_text(torsh_rules[i].name));
		torsh_json_set(object, "state",
			       torsh_json_text(torsh_rule_state_names[result->state]));
		torsh_json_set(object, "reason", torsh_json_text(result->reason));
		torsh_json_set(object, "findings", torsh_json_u64(result->n_findings));
		torsh_json_set(object, "limits", make_limits((enum rule)i));
		torsh_json_set(object, "floor_pct", torsh_json_double(torsh_rules[i].floor_pct));
		torsh_json_add(list, object);
	}
	return list;
}
