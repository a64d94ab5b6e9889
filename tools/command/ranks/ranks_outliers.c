/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Ranks that do something else than the others. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tools/base/size.h"
#include "tools/command/ranks/ranks_view.h"
#include "tools/report/text.h"

#define PATH_BYTES 256
#define PATH_NODES 4 /* innermost ones are shown */

static const char *kind_of(const struct job_difference *difference)
{
	if (!difference->others_calls)
		return "only here";
	if (!difference->calls)
		return "not here";
	if (difference->calls > difference->others_calls)
		return "more calls";
	if (difference->calls < difference->others_calls)
		return "fewer calls";
	return difference->step_ns > difference->others_step_ns ? "slower" : "faster";
}

/* "training.py:step > aten::sort": the innermost nodes of a path. */
static void path_text(const struct job *job, uint32_t node, char *text)
{
	uint32_t nodes[PATH_NODES];
	size_t n = 0, length = 0;

	for (; node && n < PATH_NODES; node = job->fold->nodes[node].parent)
		nodes[n++] = node;
	*text = 0;
	while (n-- > 0 && length < PATH_BYTES)
		length += (size_t)snprintf(text + length, PATH_BYTES - length, "%s%s",
					   job->fold->texts[job->fold->nodes[nodes[n]].function],
					   n ? " > " : "");
}

static void put_difference(struct json_writer *json, const struct job *job,
			   const struct job_difference *difference)
{
	char path[PATH_BYTES];

	path_text(job, difference->node, path);
	torsh_json_begin_object(json, NULL);
	torsh_json_put_text(json, "kind", kind_of(difference));
	torsh_json_put_text(json, "path", path);
	torsh_json_put_u64(json, "calls", difference->calls);
	torsh_json_put_u64(json, "others_calls", difference->others_calls);
	torsh_json_put_u64(json, "step_ns", difference->step_ns);
	torsh_json_put_u64(json, "others_step_ns", difference->others_step_ns);
	torsh_json_put_double(json, "share", difference->share);
	torsh_json_end_object(json);
}

void torsh_ranks_outliers_json(struct json_writer *json, const struct ranks_view *view)
{
	const struct job *job = view->job;

	torsh_json_put_text(json, "outliers_reason", job->no_outliers);
	if (job->no_outliers) {
		torsh_json_put_null(json, "outliers");
		return;
	}
	torsh_json_begin_lines(json, "outliers");
	for (size_t i = 0; i < torsh_ranks_shown(view, job->n_outliers); i++) {
		const struct job_outlier *outlier = &job->outliers[i];

		torsh_json_begin_object(json, NULL);
		torsh_json_put_u64(json, "rank", job->ranks[outlier->rank].number);
		torsh_json_put_double(json, "share", outlier->share);
		torsh_json_begin_array(json, "differences");
		for (size_t k = 0; k < outlier->n_differences; k++)
			put_difference(json, job, &outlier->differences[k]);
		torsh_json_end_array(json);
		torsh_json_end_object(json);
	}
	torsh_json_end_array(json);
}

static void print_difference(const struct job *job, const struct job_difference *difference)
{
	char path[PATH_BYTES], own[SIZE_TEXT_BYTES], others[SIZE_TEXT_BYTES];

	path_text(job, difference->node, path);
	printf("  %s: %s (%" PRIu64 " calls, %s a step; the others %" PRIu64 ", %s)\n",
	       kind_of(difference), path, difference->calls,
	       torsh_size_duration(difference->step_ns, own), difference->others_calls,
	       torsh_size_duration(difference->others_step_ns, others));
}

void torsh_ranks_outliers_text(const struct ranks_view *view)
{
	const struct job *job = view->job;
	size_t n = torsh_ranks_shown(view, job->n_outliers);

	if (!job->n_outliers)
		return;
	putchar('\n');
	torsh_text_heading(stdout, "Ranks that do something else than the others");
	for (size_t i = 0; i < n; i++) {
		const struct job_outlier *outlier = &job->outliers[i];
		char share[SIZE_TEXT_BYTES];

		printf("rank %" PRIu32 ": %s of a step\n", job->ranks[outlier->rank].number,
		       torsh_size_percent(outlier->share, 1, share));
		for (size_t k = 0; k < outlier->n_differences; k++)
			print_difference(job, &outlier->differences[k]);
	}
	torsh_text_more(stdout, job->n_outliers - n);
}
