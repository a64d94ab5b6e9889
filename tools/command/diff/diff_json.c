/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tools/base/json_writer.h"
#include "tools/command/diff/diff_report.h"
#include "tools/report/parts.h"

static const char *const names_of_totals[] = {
#define TOTAL(name, unit, text) [COMPARE_##name] = #name,
	COMPARE_TOTALS
#undef TOTAL
};

static const struct {
	const char *name, *amounts[COMPARE_AMOUNTS];
} names_of_tables[] = {
#define TABLE(NAME, name, unit, first, other_unit, second, text) \
	[COMPARE_##NAME] = {#name, {#first, #second}},
	COMPARE_TABLES
#undef TABLE
};

/* Emit {"before", "after"}, and the change for totals. */
static void emit_change(struct json_writer *json, const char *name, const struct change *change,
			bool is_total)
{
	bool is_known = change->is_known;

	torsh_json_begin_object(json, name);
	torsh_json_put_known(json, "before", is_known, change->before);
	torsh_json_put_known(json, "after", is_known, change->after);
	if (is_total && is_known)
		torsh_json_put_i64(json, "change", (int64_t)(change->after - change->before));
	else if (is_total)
		torsh_json_put_null(json, "change");
	torsh_json_put_known(json, "spread", is_known && change->has_spread, change->spread);
	torsh_json_put_bool(json, "is_change", change->is_change);
	torsh_json_end_object(json);
}

const struct place *torsh_diff_place(const struct compare_row *row)
{
	return &row->places[row->is_on[COMPARE_AFTER] ? COMPARE_AFTER : COMPARE_BEFORE];
}

static void emit_place(struct json_writer *json, const struct compare_row *row)
{
	const struct place *place = torsh_diff_place(row);
	const struct frame *old = row->is_moved ? row->places[COMPARE_BEFORE].user : NULL;

	torsh_json_put_name(json, "user_frame");
	torsh_parts_emit_user_frame(json, place->user);
	torsh_json_put_name(json, "moved_from");
	torsh_parts_emit_user_frame(json, old);
	if (row->renamed_from) {
		torsh_json_begin_object(json, "renamed");
		torsh_json_put_text(json, "from", row->renamed_from);
		torsh_json_put_text(json, "to", row->renamed_to);
		torsh_json_end_object(json);
	} else {
		torsh_json_put_null(json, "renamed");
	}
}

/* Stacks are in these tables; those of the others have a name or a line alone. */
static bool has_stacks(enum compare_table table)
{
	return table == COMPARE_SITES || table == COMPARE_PEAK || table == COMPARE_STACKS;
}

static void emit_row(struct json_writer *json, enum compare_table table,
		     const struct compare_row *row)
{
	const struct place *place = torsh_diff_place(row);

	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "status", torsh_compare_status_names[row->status]);
	if (row->name || table == COMPARE_PEAK || table == COMPARE_STACKS)
		torsh_json_put_text(json, "name", row->name);
	if (table == COMPARE_STACKS)
		torsh_json_put_text(json, "operator", place->operator_name);
	if (!row->name || has_stacks(table))
		emit_place(json, row);
	for (size_t i = 0; i < COMPARE_AMOUNTS; i++)
		emit_change(json, names_of_tables[table].amounts[i], &row->changes[i], false);
	if (has_stacks(table))
		torsh_parts_emit_stack(json, place->frames, place->n_frames);
	torsh_json_end_object(json);
}

static void emit_table(struct json_writer *json, const struct diff_view *view,
		       enum compare_table table, size_t *n_omitted)
{
	const struct compare_rows *rows = &view->comparison->tables[table];
	size_t limit = view->has_limit ? view->limit : DIFF_JSON_LIMIT;
	size_t n = limit && limit < rows->n ? limit : rows->n;

	torsh_json_begin_lines(json, names_of_tables[table].name);
	for (size_t i = 0; i < n; i++)
		emit_row(json, table, &rows->items[i]);
	torsh_json_end_array(json);
	*n_omitted = rows->n - n;
}

void torsh_diff_put_json(struct json_writer *json, const struct diff_view *view)
{
	const struct comparison *comparison = view->comparison;
	size_t n_omitted[N_COMPARE_TABLES];

	torsh_json_begin_report(json);
	torsh_json_put_u64(json, "version", 1);
	torsh_json_begin_object(json, "runs");
	torsh_json_put_u64(json, "before", comparison->n_runs[COMPARE_BEFORE]);
	torsh_json_put_u64(json, "after", comparison->n_runs[COMPARE_AFTER]);
	torsh_json_end_object(json);
	torsh_json_put_bool(json, "passed", !torsh_growth_is_too_much(view->limits, comparison));
	torsh_json_begin_object(json, "totals");
	for (enum compare_total total = 0; total < COMPARE_step_median_ns; total++)
		emit_change(json, names_of_totals[total], &comparison->totals[total].change, true);
	torsh_json_end_object(json);
	torsh_json_begin_object(json, "steps");
	emit_change(json, "median_ns", &comparison->totals[COMPARE_step_median_ns].change, false);
	torsh_json_end_object(json);
	for (enum compare_table table = 0; table < N_COMPARE_TABLES; table++)
		emit_table(json, view, table, &n_omitted[table]);
	torsh_json_begin_object(json, "omitted");
	for (enum compare_table table = 0; table < N_COMPARE_TABLES; table++)
		torsh_json_put_u64(json, names_of_tables[table].name, n_omitted[table]);
	torsh_json_end_object(json);
	torsh_json_begin_array(json, "notes");
	for (size_t i = 0; i < comparison->n_notes; i++)
		torsh_json_put_text(json, NULL, comparison->notes[i]);
	torsh_json_end_array(json);
	torsh_json_end_object(json);
}

void torsh_diff_json(const struct diff_view *view)
{
	struct json_writer json;

	torsh_json_open(&json, stdout);
	torsh_diff_put_json(&json, view);
	torsh_json_close(&json);
}
