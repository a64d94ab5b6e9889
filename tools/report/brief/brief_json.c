/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A brief as JSON. */
#include "tools/report/brief/brief.h"

#include <math.h>
#include <stdlib.h>

#include "tools/report/parts.h"
#include "tools/report/screen/screen_processes.h"

static void emit_run(struct json_writer *json, const struct brief *brief)
{
	const struct overview *overview = brief->overview;
	char *command = torsh_brief_rerun(brief);
	uint64_t ns = torsh_brief_run_ns(brief);

	torsh_json_begin_object(json, "run");
	torsh_json_put_text(json, "program", torsh_screen_name(brief->main));
	torsh_json_put_text(json, "command", command);
	torsh_json_put_u64(json, "processes", overview->n_processes);
	torsh_json_put_known(json, "duration_ns", ns, ns);
	torsh_json_put_u64(json, "steps", brief->steps.n);
	torsh_json_put_known(json, "step_median_ns", brief->steps.n, brief->steps.median_ns);
	torsh_json_put_known(json, "step_p99_ns", brief->steps.n, brief->steps.p99_ns);
	torsh_json_put_known(json, "peak_bytes", overview->highest.is_known,
			     overview->highest.bytes);
	torsh_json_put_known(json, "leaked_bytes", overview->highest.is_known,
			     overview->leaks.bytes);
	torsh_json_end_object(json);
	free(command);
}

static void emit_cost(struct json_writer *json, const struct brief_cost *cost)
{
	bool is_memory = cost->kind == COST_PEAK || cost->kind == COST_LEAK;

	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "kind", torsh_brief_cost_names[cost->kind]);
	torsh_json_put_text(json, "name", cost->name);
	torsh_json_put_known(json, "ns", !is_memory, cost->ns);
	torsh_json_put_known(json, "bytes", is_memory, cost->bytes);
	torsh_json_put_u64(json, "count", cost->calls);
	torsh_json_put_double(json, "share_pct", cost->share_pct);
	torsh_json_put_text(json, "share_of", cost->share_of);
	torsh_json_put_text(json, "inputs", cost->inputs);
	torsh_json_put_name(json, "frame");
	torsh_parts_emit_user_frame(json, cost->frame);
	torsh_json_put_text(json, "quoted", cost->quoted);
	torsh_json_put_text(json, "unquoted_reason", cost->quoted ? NULL : cost->unquoted);
	torsh_json_end_object(json);
}

static void put_gain(struct json_writer *json, const char *name, double value)
{
	if (isnan(value))
		torsh_json_put_null(json, name);
	else
		torsh_json_put_double(json, name, value);
}

static void emit_hypothesis(struct json_writer *json, const struct brief *brief,
			    const struct brief_hypothesis *hypothesis)
{
	const struct allocation_site *site = hypothesis->site;
	char *sentence = torsh_brief_sentence(brief, hypothesis);
	char *place = torsh_brief_place(brief, hypothesis);

	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "rule", torsh_brief_rule(hypothesis));
	torsh_json_put_text(json, "sentence", sentence);
	torsh_json_put_text(json, "place", place);
	torsh_json_put_text(json, "change", torsh_brief_change(hypothesis));
	put_gain(json, "gain_pct", hypothesis->gain_pct);
	torsh_json_put_text(json, "gain_of", hypothesis->share_of);
	torsh_json_put_text(json, "figure",
			    hypothesis->figure == N_FIGURES
				    ? NULL
				    : torsh_brief_figure_names[hypothesis->figure]);
	put_gain(json, "speedup_at_most", hypothesis->speedup);
	torsh_json_put_known(json, "gain_bytes", site, site ? site->bytes : 0);
	torsh_json_put_text(json, "check", torsh_brief_check(hypothesis));
	torsh_json_end_object(json);
	free(sentence);
	free(place);
}

static void emit_rule(struct json_writer *json, const char *name, const char *reason)
{
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "rule", name);
	torsh_json_put_text(json, "reason", reason);
	torsh_json_end_object(json);
}

static void emit_rules(struct json_writer *json, const char *name, const struct brief *brief,
		       enum rule_state state)
{
	const struct analysis *analysis = &brief->overview->analysis;

	torsh_json_begin_array(json, name);
	for (enum rule rule = 0; rule < N_RULES; rule++) {
		if (analysis->rules[rule].state == state)
			emit_rule(json, torsh_rules[rule].name, analysis->rules[rule].reason);
	}
	for (enum suspect_kind kind = 0; kind < N_SUSPECTS; kind++) {
		if (torsh_brief_suspect_state(brief, kind) == state)
			emit_rule(json, torsh_suspects[kind].name,
				  brief->suspects.items[kind].reason);
	}
	torsh_json_end_array(json);
}

void torsh_brief_json(FILE *out, const struct brief *brief)
{
	const struct overview *overview = brief->overview;
	struct json_writer json;

	torsh_json_open(&json, out);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	emit_run(&json, brief);
	torsh_json_begin_lines(&json, "costs");
	for (size_t i = 0; i < brief->n_costs; i++)
		emit_cost(&json, &brief->costs[i]);
	torsh_json_end_array(&json);
	torsh_json_begin_lines(&json, "hypotheses");
	for (size_t i = 0; i < brief->n_hypotheses; i++)
		emit_hypothesis(&json, brief, &brief->hypotheses[i]);
	torsh_json_end_array(&json);
	emit_rules(&json, "ruled_out", brief, RULE_CLEAR);
	emit_rules(&json, "not_judged", brief, RULE_NOT_EVALUATED);
	torsh_parts_emit_events(&json, overview->processes, overview->n_processes);
	torsh_parts_emit_recording(&json, overview->recording);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
}
