/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A validation as JSON. */
#include <math.h>
#include <stdio.h>

#include "tools/base/json_writer.h"
#include "tools/report/validate/validation.h"

static void put_number(struct json_writer *json, const char *name, double value)
{
	if (isfinite(value))
		torsh_json_put_double(json, name, value);
	else
		torsh_json_put_null(json, name);
}

static void emit_change(struct json_writer *json, const char *name, const struct change *change)
{
	torsh_json_begin_object(json, name);
	torsh_json_put_known(json, "before", change->is_known, change->before);
	torsh_json_put_known(json, "after", change->is_known, change->after);
	torsh_json_put_known(json, "spread", change->is_known && change->has_spread,
			     change->spread);
	torsh_json_put_bool(json, "is_change", change->is_change);
	torsh_json_end_object(json);
}

static void emit_verdict(struct json_writer *json, const struct claim_verdict *verdict)
{
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "rule", verdict->claim->rule);
	torsh_json_put_text(json, "verdict", torsh_verdict_names[verdict->verdict]);
	torsh_json_put_text(json, "reason", verdict->reason);
	torsh_json_put_text(
		json, "figure",
		verdict->figure == N_FIGURES ? NULL : torsh_brief_figure_names[verdict->figure]);
	put_number(json, "predicted_pct", verdict->claim->gain_pct);
	put_number(json, "seen_pct", verdict->seen_pct);
	emit_change(json, "change", &verdict->change);
	torsh_json_put_text(json, "cause", torsh_cause_names[verdict->cause]);
	put_number(json, "cause_before_pct", verdict->before_pct);
	put_number(json, "cause_after_pct", verdict->after_pct);
	torsh_json_end_object(json);
}

static void emit_side(struct json_writer *json, const char *name, const struct result_side *side)
{
	torsh_json_begin_object(json, name);
	torsh_json_put_u64(json, "runs", side->n_runs);
	torsh_json_put_u64(json, "values", side->n_most);
	if (side->n_runs)
		put_number(json, "last", side->last);
	else
		torsh_json_put_null(json, "last");
	torsh_json_end_object(json);
}

static void emit_row(struct json_writer *json, const struct result_row *row)
{
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "name", row->name);
	torsh_json_put_text(json, "verdict", torsh_results_verdict_names[row->verdict]);
	emit_side(json, "before", &row->before);
	emit_side(json, "after", &row->after);
	put_number(json, "difference", row->difference);
	torsh_json_end_object(json);
}

static void emit_printed(struct json_writer *json, const struct result_text *text)
{
	if (!text->before) {
		torsh_json_put_null(json, "printed");
		return;
	}
	torsh_json_begin_object(json, "printed");
	torsh_json_put_text(json, "before", text->before);
	torsh_json_put_text(json, "after", text->after);
	torsh_json_put_u64(json, "numbers", text->n_numbers);
	put_number(json, "difference", text->difference);
	torsh_json_put_known(json, "first_different_line", text->line, text->line);
	torsh_json_end_object(json);
}

static void emit_status(struct json_writer *json, const char *name, bool has, int status)
{
	if (has)
		torsh_json_put_i64(json, name, status);
	else
		torsh_json_put_null(json, name);
}

static void emit_results(struct json_writer *json, const struct results *results)
{
	torsh_json_begin_object(json, "results");
	torsh_json_put_text(json, "verdict", torsh_results_verdict_names[results->verdict]);
	torsh_json_put_text(json, "reason", results->reason);
	torsh_json_put_double(json, "tolerance", results->tolerance);
	torsh_json_begin_array(json, "values");
	for (size_t i = 0; i < results->n; i++)
		emit_row(json, &results->rows[i]);
	torsh_json_end_array(json);
	emit_printed(json, &results->text);
	emit_status(json, "status_before", results->has_status_before && !results->status_varies,
		    results->status_before);
	emit_status(json, "status_after", results->has_status_after && !results->status_varies,
		    results->status_after);
	torsh_json_end_object(json);
}

static void emit_paths(struct json_writer *json, const char *name, const struct measured_run *runs,
		       size_t n)
{
	torsh_json_begin_array(json, name);
	for (size_t i = 0; i < n; i++)
		torsh_json_put_text(json, NULL, runs[i].path);
	torsh_json_end_array(json);
}

void torsh_validation_json(const struct validation *validation)
{
	struct json_writer json;

	torsh_json_open(&json, stdout);
	torsh_json_begin_report(&json);
	torsh_json_put_u64(&json, "version", 1);
	emit_paths(&json, "before", validation->runs, validation->n_before);
	emit_paths(&json, "after", validation->runs + validation->n_before, validation->n_after);
	torsh_json_put_bool(&json, "holds", torsh_validation_holds(validation));
	torsh_json_begin_lines(&json, "claims");
	for (size_t i = 0; i < validation->claims->n; i++)
		emit_verdict(&json, &validation->verdicts[i]);
	torsh_json_end_array(&json);
	torsh_json_begin_object(&json, "figures");
	for (enum brief_figure figure = 0; figure < N_FIGURES; figure++)
		emit_change(&json, torsh_brief_figure_names[figure], &validation->figures[figure]);
	torsh_json_end_object(&json);
	emit_results(&json, &validation->results);
	torsh_json_end_object(&json);
	torsh_json_close(&json);
}
