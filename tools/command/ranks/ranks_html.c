/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The page of torsh ranks: its JSON in tools/export/html/page/job. */
#include <stdlib.h>
#include <string.h>

#include "tools/base/die.h"
#include "tools/command/ranks/ranks_view.h"
#include "tools/export/html/html_parts.h"
#include "tools/export/output.h"

#define PAGE_ROWS 1000

/* Returns the page's JSON, which the caller frees. */
static char *make_document(const struct ranks_view *view)
{
	struct json_writer json;

	torsh_json_open_memory(&json);
	torsh_json_begin_object(&json, NULL);
	torsh_ranks_put_json(&json, view);
	torsh_json_end_object(&json);
	return torsh_json_close_memory(&json);
}

void torsh_ranks_html(const struct ranks_view *view, const char *path)
{
	struct ranks_view shown = {.job = view->job,
				   .limit = view->limit ? view->limit : PAGE_ROWS};
	struct output output;
	bool is_put = false;

	torsh_output_open(&output, strcmp(path, "-") == 0 ? NULL : path);
	/* Of fewer rows, if all of them would be too large. */
	for (; !is_put && shown.limit; shown.limit /= 2) {
		char *document = make_document(&shown);

		is_put = torsh_html_put_job(output.file, document);
		free(document);
	}
	if (!is_put)
		torsh_die("the page would be too large");
	torsh_output_close(&output, 0);
	if (output.path)
		torsh_warn("wrote %s: open it in a web browser", path);
}
