/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The page of torsh diff: its JSON in tools/export/html/page/diff. */
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/command/diff/diff_report.h"
#include "tools/export/html/html_frames.h"
#include "tools/export/html/html_parts.h"
#include "tools/export/output.h"

static void put_paths(struct json_writer *json, const char *name, const char *const *paths,
		      size_t n)
{
	torsh_json_begin_array(json, name);
	for (size_t i = 0; i < n; i++)
		torsh_json_put_text(json, NULL, paths[i]);
	torsh_json_end_array(json);
}

/* The categories of the frames of each stack of a table, in the order of its rows. */
static void put_table(struct json_writer *json, const char *name, const struct diff_view *view,
		      enum compare_table table)
{
	const struct compare_rows *rows = &view->comparison->tables[table];
	size_t n = view->limit && view->limit < rows->n ? view->limit : rows->n;

	torsh_json_begin_array(json, name);
	for (size_t i = 0; i < n; i++) {
		const struct place *place = torsh_diff_place(&rows->items[i]);

		torsh_json_begin_array(json, NULL);
		for (size_t k = 0; k < place->n_frames; k++)
			torsh_json_put_u64(json, NULL, torsh_html_frame_category(place->frames[k]));
		torsh_json_end_array(json);
	}
	torsh_json_end_array(json);
}

static void put_categories(struct json_writer *json, const struct diff_view *view)
{
	torsh_json_begin_object(json, "categories");
	put_table(json, "sites", view, COMPARE_SITES);
	put_table(json, "peak", view, COMPARE_PEAK);
	put_table(json, "stacks", view, COMPARE_STACKS);
	torsh_json_end_object(json);
}

/* Returns the page's JSON, which the caller frees. */
static char *make_document(const struct diff_view *view)
{
	const size_t *n_runs = view->comparison->n_runs;
	struct json_writer json;

	torsh_json_open_memory(&json);
	torsh_json_begin_object(&json, NULL);
	put_paths(&json, "before", view->paths, n_runs[COMPARE_BEFORE]);
	put_paths(&json, "after", view->paths + n_runs[COMPARE_BEFORE], n_runs[COMPARE_AFTER]);
	torsh_json_put_name(&json, "diff");
	torsh_diff_put_json(&json, view);
	put_categories(&json, view);
	torsh_json_end_object(&json);
	return torsh_json_close_memory(&json);
}

static void put_page(const struct diff_view *view, FILE *out)
{
	struct diff_view shown = *view;
	bool is_put = false;

	if (!shown.has_limit)
		shown.limit = DIFF_JSON_LIMIT;
	shown.has_limit = true;
	while (!is_put) {
		char *document = make_document(&shown);

		is_put = torsh_html_put_diff(out, document);
		free(document);
		if (!is_put && shown.limit == 1)
			torsh_die("the page would be too large");
		shown.limit = shown.limit > 1 ? shown.limit / 2 : shown.limit ? 1 : DIFF_JSON_LIMIT;
	}
}

void torsh_diff_html(const struct diff_view *view, const char *path)
{
	struct output output;

	torsh_output_open(&output, strcmp(path, "-") == 0 ? NULL : path);
	put_page(view, output.file);
	torsh_output_close(&output, 0);
	if (output.path)
		torsh_warn("wrote %s: open it in a web browser", path);
}
