/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/analysis/findings_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analysis/sentence.h"
#include "tools/base/die.h"
#include "tools/frames/blamed_line.h"
#include "tools/frames/short_name.h"
#include "tools/symbols/frame_text.h"
#include "tools/symbols/stack_view.h"

static void emit_limit_members(struct json_writer *json, const struct limit_words *limit)
{
	torsh_json_put_text(json, "side", torsh_side_names[limit->side]);
	torsh_json_put_double(json, "value", limit->value);
}

static void emit_limit(struct json_writer *json, const struct limit_words *limit)
{
	if (!limit) {
		torsh_json_put_null(json, "limit");
		return;
	}
	torsh_json_begin_object(json, "limit");
	emit_limit_members(json, limit);
	torsh_json_end_object(json);
}

static void emit_evidence(struct json_writer *json, const struct finding *finding)
{
	torsh_json_begin_array(json, "evidence");
	for (size_t i = 0; i < finding->n_evidence; i++) {
		const struct evidence *evidence = &finding->evidence[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "name", evidence->name);
		torsh_json_put_double(json, "value", evidence->value);
		torsh_json_put_text(json, "unit", evidence->unit);
		emit_limit(json, evidence->limit);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

/* NULL: the stack has no frames. */
static char *blamed_line_text(const struct finding *finding, struct symbols *symbols)
{
	enum stack_view view =
		finding->process->tables->has_python ? STACK_VIEW_MERGED : STACK_VIEW_NATIVE;
	size_t n, where;
	const struct frame **frames =
		torsh_stack_frames(finding->process, finding->stack, symbols, view, &n);
	char *line = NULL, *place, *function;

	where = torsh_blamed_line(frames, n, torsh_working_directory()).where;
	if (where != FRAME_NONE) {
		place = torsh_short_place(frames[where], torsh_working_directory());
		function = torsh_short_frame(frames[where]);
		line = torsh_need(malloc(strlen(place) + strlen(function) + 2));
		sprintf(line, "%s %s", place, function);
		free(place);
		free(function);
	}
	free(frames);
	return line;
}

char *torsh_finding_line(const struct finding *finding, struct symbols *symbols)
{
	char *line;

	if (finding->is_stack_of_program)
		return finding->stack && symbols ? blamed_line_text(finding, symbols) : NULL;
	line = finding->stack && symbols
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

static void emit_where(struct json_writer *json, const struct finding *finding,
		       struct symbols *symbols)
{
	char *line = torsh_finding_line(finding, symbols);

	torsh_json_begin_object(json, "where");
	torsh_json_put_u64(json, "pid", finding->process->pid);
	torsh_json_put_known(json, "device_id", finding->has_device, finding->device);
	torsh_json_put_text(json, "operator_name", finding->operator_name);
	torsh_json_put_text(json, "kernel_name", torsh_finding_kernel(finding, symbols));
	torsh_json_put_text(json, "api", finding->api);
	torsh_json_put_text(json, "source_line", line);
	free(line);
	torsh_json_end_object(json);
}

static void emit_gain(struct json_writer *json, const struct finding *finding)
{
	/* NAN is null. */
	torsh_json_put_double(json, "gain_ns", finding->gain_ns);
	torsh_json_put_double(json, "gain_bytes", finding->gain_bytes);
	torsh_json_put_text(json, "no_gain", finding->no_gain);
}

static void emit_moment(struct json_writer *json, const struct finding *finding)
{
	if (!finding->until_ns) {
		torsh_json_put_null(json, "shown_at");
		return;
	}
	torsh_json_begin_object(json, "shown_at");
	torsh_json_put_u64(json, "from_ns", finding->from_ns);
	torsh_json_put_u64(json, "until_ns", finding->until_ns);
	torsh_json_end_object(json);
}

char *torsh_finding_anchor(const struct finding *finding, size_t i)
{
	return finding->until_ns ? torsh_need_text("#time/timeline?finding=%zu", i + 1)
				 : torsh_need_text("#findings/finding-%zu", i + 1);
}

static void emit_finding(struct json_writer *json, const struct finding *finding, size_t i,
			 struct symbols *symbols)
{
	const struct rule_words *rule = &torsh_rules[finding->rule];
	char *sentence = torsh_finding_sentence(finding, symbols);
	char *place = torsh_finding_place(finding, symbols);
	char *anchor = torsh_finding_anchor(finding, i);

	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "sentence", sentence);
	torsh_json_put_text(json, "place", place);
	torsh_json_put_text(json, "next", rule->next);
	torsh_json_put_text(json, "kind", torsh_analysis_kind_names[rule->kind]);
	torsh_json_put_text(json, "rule", rule->name);
	torsh_json_put_text(json, "severity", torsh_severity_names[finding->severity]);
	torsh_json_put_double(json, "share_pct", finding->share_pct);
	torsh_json_put_text(json, "share_of", finding->share_of);
	emit_gain(json, finding);
	emit_moment(json, finding);
	torsh_json_put_text(json, "anchor", anchor);
	emit_where(json, finding, symbols);
	emit_evidence(json, finding);
	torsh_json_put_text(json, "description", rule->description);
	torsh_json_put_text(json, "suggestion", rule->suggestion);
	torsh_json_put_text(json, "note", finding->note);
	torsh_json_end_object(json);
	free(sentence);
	free(place);
	free(anchor);
}

void torsh_findings_json(struct json_writer *json, const struct analysis *analysis,
			 struct symbols *symbols)
{
	torsh_json_begin_array(json, "inefficiencies");
	for (size_t i = 0; i < analysis->n; i++)
		emit_finding(json, &analysis->findings[i], i, symbols);
	torsh_json_end_array(json);
}

static void emit_limits(struct json_writer *json, enum rule rule)
{
	torsh_json_begin_array(json, "limits");
	for (int i = 0; i < N_LIMITS; i++) {
		if (torsh_limits[i].rule != rule)
			continue;
		torsh_json_begin_object(json, NULL);
		emit_limit_members(json, &torsh_limits[i]);
		torsh_json_put_text(json, "name", torsh_limits[i].name);
		torsh_json_put_text(json, "unit", torsh_limits[i].unit);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

void torsh_rules_json(struct json_writer *json, const struct analysis *analysis)
{
	torsh_json_begin_array(json, "rules");
	for (int i = 0; i < N_RULES; i++) {
		const struct rule_result *result = &analysis->rules[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "rule", torsh_rules[i].name);
		torsh_json_put_text(json, "state", torsh_rule_state_names[result->state]);
		torsh_json_put_text(json, "reason", result->reason);
		torsh_json_put_u64(json, "findings", result->n_findings);
		emit_limits(json, (enum rule)i);
		torsh_json_put_double(json, "floor_pct", torsh_rules[i].floor_pct);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}
