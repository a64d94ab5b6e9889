/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* See tools/report/findings.h. */
#include "tools/report/findings.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/export/trace.h"
#include "tools/report/text.h"
#include "tools/base/size.h"

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

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
		torsh_json_set(object, "limit", evidence->limit ? make_limit(evidence->limit) : torsh_json_text(NULL));
		torsh_json_add(list, object);
	}
	return list;
}

/* NULL: it is not known. The caller frees it. */
static char *line_of(const struct finding *finding, struct symbols *symbols)
{
	char *line = finding->stack && symbols ? torsh_trace_line(finding->process, finding->stack, symbols) : NULL;

	if (line && !*line) {
		free(line);
		line = NULL;
	}
	return line;
}

static const char *kernel_of(const struct finding *finding, struct symbols *symbols)
{
	return finding->kernel && symbols ? torsh_symbols_demangle(symbols, finding->kernel) : finding->kernel;
}

static cJSON *make_where(const struct finding *finding, struct symbols *symbols)
{
	cJSON *object = torsh_json_object();
	char *line = line_of(finding, symbols);

	torsh_json_set(object, "pid", torsh_json_u64(finding->process->pid));
	torsh_json_set(object, "device_id",
		       finding->has_device ? torsh_json_u64(finding->device) : torsh_json_text(NULL));
	torsh_json_set(object, "operator_name", torsh_json_text(finding->operator_name));
	torsh_json_set(object, "kernel_name", torsh_json_text(kernel_of(finding, symbols)));
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
	torsh_json_set(object, "severity", torsh_json_text(torsh_severity_names[finding->severity]));
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
		torsh_json_set(object, "state", torsh_json_text(torsh_rule_state_names[result->state]));
		torsh_json_set(object, "reason", torsh_json_text(result->reason));
		torsh_json_set(object, "findings", torsh_json_u64(result->n_findings));
		torsh_json_set(object, "limits", make_limits((enum rule)i));
		torsh_json_set(object, "floor_pct", torsh_json_double(torsh_rules[i].floor_pct));
		torsh_json_add(list, object);
	}
	return list;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* Of a sum that may be beyond all numbers. */
static uint64_t whole(double value)
{
	return value < 0x1p63 ? (uint64_t)fmax(value, 0) : UINT64_C(1) << 63;
}

static void print_value(const struct evidence *evidence)
{
	char text[SIZE_TEXT_BYTES];

	if (strcmp(evidence->unit, "ns") == 0)
		printf("%s %s", evidence->name, torsh_size_duration(whole(evidence->value), text));
	else if (strcmp(evidence->unit, "bytes") == 0)
		printf("%s %s", evidence->name, torsh_size_human(whole(evidence->value), text));
	else
		printf("%s %.6g %s", evidence->name, evidence->value, evidence->unit);
}

static void print_limit(const struct limit_words *limit)
{
	char text[SIZE_TEXT_BYTES];

	if (strcmp(limit->unit, "ns") == 0)
		printf(" (%s %s)", torsh_side_names[limit->side], torsh_size_duration(whole(limit->value), text));
	else if (strcmp(limit->unit, "bytes") == 0)
		printf(" (%s %s)", torsh_side_names[limit->side], torsh_size_human(whole(limit->value), text));
	else
		printf(" (%s %.6g)", torsh_side_names[limit->side], limit->value);
}

static void print_where(const struct finding *finding, struct symbols *symbols)
{
	const char *kernel = kernel_of(finding, symbols), *separator = "      ";
	char *line = line_of(finding, symbols);

	if (kernel) {
		fputs(separator, stdout);
		torsh_text_function(stdout, kernel);
		separator = ", ";
	}
	if (finding->api) {
		printf("%s%s", separator, finding->api);
		separator = ", ";
	}
	if (finding->operator_name) {
		printf("%sin %s", separator, finding->operator_name);
		separator = ", ";
	}
	if (finding->has_device) {
		printf("%sdevice %" PRIu32, separator, finding->device);
		separator = ", ";
	}
	printf("%spid %" PRIu32, separator, finding->process->pid);
	printf(line ? ", %s\n" : "\n", line);
	free(line);
}

static void print_finding(const struct finding *finding, struct symbols *symbols, size_t n_more)
{
	const struct rule_words *rule = &torsh_rules[finding->rule];

	printf("  %s, %s", torsh_severity_names[finding->severity], rule->name);
	if (!isnan(finding->share_pct))
		printf(", %.1f %% of %s", finding->share_pct, finding->share_of);
	printf(": %s\n", rule->description);
	print_where(finding, symbols);
	fputs("      ", stdout);
	for (size_t i = 0; i < finding->n_evidence; i++) {
		fputs(i ? ", " : "", stdout);
		print_value(&finding->evidence[i]);
		if (finding->evidence[i].limit)
			print_limit(finding->evidence[i].limit);
	}
	putchar('\n');
	if (finding->note)
		printf("      %s\n", finding->note);
	printf("      %s\n", rule->suggestion);
	if (n_more)
		printf("      and %zu more of this rule\n", n_more);
}

static size_t count_rules(const struct analysis *analysis, enum rule_state state)
{
	size_t n = 0;

	for (int i = 0; i < N_RULES; i++)
		n += analysis->rules[i].state == state;
	return n;
}

static bool is_first_with_reason(const struct analysis *analysis, int rule)
{
	for (int i = 0; i < rule; i++) {
		if (analysis->rules[i].state == RULE_NOT_JUDGED &&
		    strcmp(analysis->rules[i].reason, analysis->rules[rule].reason) == 0)
			return false;
	}
	return true;
}

/* A line for each reason. */
static void print_not_judged(const struct analysis *analysis)
{
	for (int i = 0; i < N_RULES; i++) {
		const char *reason = analysis->rules[i].reason, *separator = "";

		if (analysis->rules[i].state != RULE_NOT_JUDGED || !is_first_with_reason(analysis, i))
			continue;
		printf("  not judged, as %s: ", reason);
		for (int k = i; k < N_RULES; k++) {
			if (analysis->rules[k].state != RULE_NOT_JUDGED ||
			    strcmp(analysis->rules[k].reason, reason) != 0)
				continue;
			printf("%s%s", separator, torsh_rules[k].name);
			separator = ", ";
		}
		putchar('\n');
	}
}

void torsh_findings_text(const struct analysis *analysis, struct symbols *symbols, size_t limit)
{
	bool is_shown[N_RULES] = {false};
	size_t n_fired = count_rules(analysis, RULE_FIRED), n_shown = 0;

	if (!analysis->has_anything)
		return;
	putchar('\n');
	torsh_text_heading(stdout, "Inefficiencies: %zu of %d rules found something, %zu did not", n_fired, N_RULES,
			   count_rules(analysis, RULE_CLEAR));
	for (size_t i = 0; i < analysis->n && n_shown < limit; i++) {
		const struct finding *finding = &analysis->findings[i];

		if (is_shown[finding->rule])
			continue;
		is_shown[finding->rule] = true;
		n_shown++;
		print_finding(finding, symbols, analysis->rules[finding->rule].n_findings - 1);
	}
	if (n_fired > n_shown)
		printf("  ... and %zu rules more (--json has all)\n", n_fired - n_shown);
	print_not_judged(analysis);
}
