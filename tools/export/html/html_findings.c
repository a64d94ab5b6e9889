/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include <math.h>
#include <stdlib.h>

#include "tools/analysis/analysis.h"
#include "tools/analysis/findings_json.h"
#include "tools/analysis/metrics.h"
#include "tools/analysis/sentence.h"
#include "tools/base/die.h"
#include "tools/export/html/html_page.h"

struct html_findings {
	struct analysis_request request;
	struct analysis analysis;
};

void torsh_html_findings_collect(struct html_page *page)
{
	const struct trace *trace = page->trace;
	struct html_findings *findings = page->findings = torsh_need(calloc(1, sizeof(*findings)));

	findings->request = (struct analysis_request){.recording = trace->recording,
						      .processes = trace->processes,
						      .n_processes = trace->n_processes,
						      .prepass = trace->prepass,
						      .to_ns = UINT64_MAX};
	torsh_analysis_make(&findings->analysis, &findings->request);
}

const struct metrics_process *torsh_html_metrics(const struct html_page *page, size_t process)
{
	const struct metrics *metrics = page->findings->analysis.metrics;

	return metrics && process < metrics->n ? &metrics->processes[process] : NULL;
}

const struct finding *torsh_html_finding(const struct html_page *page, size_t i)
{
	const struct analysis *analysis = &page->findings->analysis;

	return i < analysis->n ? &analysis->findings[i] : NULL;
}

void torsh_html_findings_free(struct html_page *page)
{
	torsh_analysis_free(&page->findings->analysis);
	free(page->findings);
}

static void put_evidence(struct json_writer *json, const struct evidence *evidence)
{
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "name", evidence->name);
	torsh_json_put_text(json, "unit", evidence->unit);
	torsh_json_put_double(json, "value", evidence->value);
	if (evidence->limit) {
		torsh_json_begin_object(json, "limit");
		torsh_json_put_text(json, "side", torsh_side_names[evidence->limit->side]);
		torsh_json_put_double(json, "value", evidence->limit->value);
		torsh_json_end_object(json);
	}
	torsh_json_end_object(json);
}

static void put_where(struct html_page *page, const struct finding *finding)
{
	struct symbols *symbols = page->trace->symbols;
	struct json_writer *json = &page->json;
	char *line = torsh_finding_line(finding, symbols);

	torsh_json_begin_object(json, "where");
	torsh_json_put_u64(json, "process", torsh_html_process(page, finding->process));
	torsh_json_put_known(json, "device", finding->has_device, finding->device);
	torsh_html_put_text(page, "operator", finding->operator_name);
	torsh_html_put_text(page, "kernel", torsh_finding_kernel(finding, symbols));
	torsh_html_put_text(page, "api", finding->api);
	torsh_html_put_text(page, "line", line);
	torsh_json_end_object(json);
	free(line);
}

/* [from, until]; null: no time shows it */
static void put_moment(struct json_writer *json, const struct finding *finding)
{
	if (!finding->until_ns) {
		torsh_json_put_null(json, "shown");
		return;
	}
	torsh_json_begin_array(json, "shown");
	torsh_json_put_u64(json, NULL, finding->from_ns);
	torsh_json_put_u64(json, NULL, finding->until_ns);
	torsh_json_end_array(json);
}

static void put_finding(struct html_page *page, const struct finding *finding)
{
	const struct rule_words *rule = &torsh_rules[finding->rule];
	struct json_writer *json = &page->json;
	char *sentence = torsh_finding_sentence(finding, page->trace->symbols);
	char *place = torsh_finding_place(finding, page->trace->symbols);

	torsh_json_begin_object(json, NULL);
	torsh_html_put_text(page, "sentence", sentence);
	torsh_html_put_text(page, "place", place);
	torsh_json_put_text(json, "next", rule->next);
	free(sentence);
	free(place);
	torsh_json_put_text(json, "rule", rule->name);
	torsh_json_put_bool(json, "is_remark", torsh_finding_is_remark(finding));
	torsh_json_put_text(json, "severity", torsh_severity_names[finding->severity]);
	torsh_json_put_double(json, "share", finding->share_pct);
	torsh_json_put_text(json, "share_of", finding->share_of);
	torsh_json_put_text(json, "description", rule->description);
	torsh_json_put_text(json, "suggestion", rule->suggestion);
	torsh_html_put_text(page, "note", finding->note);
	torsh_json_put_double(json, "gain_ns", finding->gain_ns);
	torsh_json_put_double(json, "gain_bytes", finding->gain_bytes);
	torsh_json_put_text(json, "no_gain", finding->no_gain);
	put_moment(json, finding);
	put_where(page, finding);
	torsh_json_begin_array(json, "evidence");
	for (size_t i = 0; i < finding->n_evidence; i++)
		put_evidence(json, &finding->evidence[i]);
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

static void put_rules(struct html_page *page, const struct analysis *analysis)
{
	struct json_writer *json = &page->json;

	torsh_json_begin_array(json, "rules");
	for (size_t i = 0; i < N_RULES; i++) {
		torsh_json_begin_object(json, NULL);
		torsh_json_put_text(json, "name", torsh_rules[i].name);
		torsh_json_put_text(json, "description", torsh_rules[i].description);
		torsh_json_put_text(json, "state",
				    torsh_rule_state_names[analysis->rules[i].state]);
		torsh_html_put_text(page, "reason", analysis->rules[i].reason);
		torsh_json_put_u64(json, "n", analysis->rules[i].n_findings);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

void torsh_html_findings_put(struct html_page *page)
{
	const struct analysis *analysis = &page->findings->analysis;

	torsh_json_begin_array(&page->json, "findings");
	for (size_t i = 0; i < analysis->n; i++)
		put_finding(page, &analysis->findings[i]);
	torsh_json_end_array(&page->json);
	put_rules(page, analysis);
}
